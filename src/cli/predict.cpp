// gossamer predict CONFIG: predicts a run by theory, before it starts.
#include "peer/prediction/prediction.hpp"

#include <fmt/format.h>

#include <memory>

#include "cli/commands.hpp"

namespace gossamer::cli {

using namespace peer;
namespace {

struct PredictCommand {
  ConfigOptions config;
  bool json = false;
  double decay = kDecay;
};

Result<int> execute(const PredictCommand& command) {
  GOSSAMER_TRY(Config config, command.config.load());
  GOSSAMER_TRY_STATUS(check_predictable(config));
  config.local.device = "cpu";  // whatever device the run uses
  GOSSAMER_TRY(const Setup setup, make_setup(std::move(config)));
  const Prediction prediction = predict(setup, command.decay);
  fmt::print("{}", command.json ? text_of(prediction_json(setup, prediction)) + "\n"
                                : prediction_text(setup, prediction));
  return 0;
}

}  // namespace

void add_predict(CLI::App& app, int& exit_code) {
  auto command = std::make_shared<PredictCommand>();
  CLI::App* predict =
      app.add_subcommand("predict", "predict a run by theory: its curve, rate, limit and bytes");
  command->config.add_to(*predict);
  predict->add_flag("--json", command->json, "print one JSON object");
  predict->add_option("--decay", command->decay, "γ of the effective number of neighbours n_W(γ)")
      ->capture_default_str()
      ->check(CLI::Range(0.0, topology::kMostDecay));
  predict->callback([command, &exit_code] {
    auto result = execute(*command);
    exit_code = result.ok() ? *result : print_error(result.error());
  });
}

}  // namespace gossamer::cli
