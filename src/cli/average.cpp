// gossamer average A B … -o MEAN: the mean of models, be they files' or peers'.
#include "peer/storage/average.hpp"

#include <fmt/format.h>

#include <memory>

#include "cli/commands.hpp"

namespace gossamer::cli {

using namespace peer;
namespace {

struct AverageCommand {
  std::vector<std::string> files;
  std::string output;
};

Result<int> execute(const AverageCommand& command) {
  GOSSAMER_TRY(const Averaged averaged,
               average({command.files.begin(), command.files.end()}, command.output));
  fmt::print("{}: the mean of {} models, {} tensors, {} parameters\n", command.output,
             averaged.models, averaged.tensors, averaged.parameters);
  return 0;
}

}  // namespace

void add_average(CLI::App& app, int& exit_code) {
  auto command = std::make_shared<AverageCommand>();
  CLI::App* average = app.add_subcommand(
      "average", "one model from many: the mean of peers' parameters, or of files");
  average
      ->add_option("files", command->files,
                   "safetensors files: final parameters, checkpoints, or models of equal tensors")
      ->required();
  average->add_option("-o,--output", command->output, "the file to write")->required();
  average->callback([command, &exit_code] {
    const auto result = execute(*command);
    exit_code = result.ok() ? *result : report(result.error());
  });
}

}  // namespace gossamer::cli
