// gossamer average A B … -o MEAN: the mean of the models in files, or of the peers of a run.
#include "peer/storage/average.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "cli/commands.hpp"
#include "peer/checkpoint/checkpoint.hpp"

namespace gossamer::cli {

using namespace peer;
namespace {

struct AverageCommand {
  std::vector<std::string> files;
  std::string output;
};

Result<int> execute(const AverageCommand& command) {
  std::vector<std::filesystem::path> files(command.files.begin(), command.files.end());
  for (std::filesystem::path& file : files)
    if (file.extension() == ".json") file = tensors_path(file);  // the manifest of a checkpoint
  GOSSAMER_TRY(const Averaged averaged, average(files, command.output));
  fmt::print("{}: the mean of {} models, {} tensors, {} parameters\n", command.output,
             averaged.models, averaged.tensors, averaged.parameters);
  return 0;
}

}  // namespace

void add_average(CLI::App& app, int& exit_code) {
  auto command = std::make_shared<AverageCommand>();
  CLI::App* average = app.add_subcommand(
      "average", "average the parameters of peers, or of model files, into one model");
  average
      ->add_option(
          "files", command->files,
          "safetensors files: final parameters, checkpoints (or their .json), or models with the "
          "same tensors")
      ->required();
  average->add_option("-o,--output", command->output, "the file to write")->required();
  average->callback([command, &exit_code] {
    const auto result = execute(*command);
    exit_code = result.ok() ? *result : print_error(result.error());
  });
}

}  // namespace gossamer::cli
