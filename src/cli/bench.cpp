// gossamer bench: benchmarks within this process. experiments/benchmarks/ compares them with other
// programs.
#include <fmt/format.h>

#include <memory>

#include "cli/commands.hpp"
#include "peer/benchmarks/bench_runtime.hpp"
#include "peer/benchmarks/bench_training.hpp"
#include "peer/storage/files.hpp"

namespace gossamer::cli {

using namespace peer;
namespace {

struct BenchCommand {
  std::string workload;
  int peers = 0, rounds = 200, pairs = 9;
  std::size_t length = 1000000;
  double seconds = 2;
  bool json = false;
};

Result<int> bench_train(const BenchCommand& command) {
  GOSSAMER_TRY(const double rate,
               bench_training_steps_per_second(command.workload, command.peers, command.seconds));
  if (command.json)
    fmt::print(
        "{}\n",
        Json{{"workload", command.workload}, {"peers", command.peers}, {"steps_per_second", rate}}
            .dump());
  else
    fmt::print("{}, {} peers, one core: {:.0f} node steps/s\n", command.workload, command.peers,
               rate);
  return 0;
}

Result<int> bench_mixing(const BenchCommand& command) {
  const MixBenchmark mix = bench_mix(command.peers, command.length, command.pairs);
  if (command.json)
    fmt::print("{}\n", Json{{"peers", mix.peers},
                            {"length", mix.length},
                            {"fraction_of_copy_bandwidth",
                             {{"median", mix.median_fraction},
                              {"low", mix.low_fraction},
                              {"high", mix.high_fraction}}},
                            {"copy_bytes_per_second", mix.copy_bytes_per_second},
                            {"mix_seconds", mix.mix_seconds},
                            {"copy_seconds", mix.copy_seconds}}
                           .dump());
  else
    fmt::print(
        "mix of {} rows of {} floats on a ring, one core: {:.0f} % of the copy bandwidth ({:.0f} "
        "to {:.0f} %), which is {:.1f} GB/s\n",
        mix.peers, mix.length, mix.median_fraction * 100, mix.low_fraction * 100,
        mix.high_fraction * 100, mix.copy_bytes_per_second / 1e9);
  return 0;
}

Result<int> bench_rounds(const BenchCommand& command) {
  GOSSAMER_TRY(const RuntimeBenchmark runtime,
               bench_runtime(command.peers, command.rounds, command.pairs));
  if (command.json)
    fmt::print("{}\n",
               Json{{"peers", runtime.peers},
                    {"rounds", runtime.rounds},
                    {"microseconds_per_peer_and_round",
                     {{"median", runtime.median}, {"low", runtime.low}, {"high", runtime.high}}},
                    {"training_microseconds", runtime.training_microseconds}}
                   .dump());
  else
    fmt::print(
        "a round of dpsgd, softmax on digits, {} peers on a ring, one core: {:.2f} µs per peer in "
        "addition to training ({:.2f} to {:.2f}); training alone {:.2f} µs\n",
        runtime.peers, runtime.median, runtime.low, runtime.high, runtime.training_microseconds);
  return 0;
}

using Measure = Result<int> (*)(const BenchCommand&);

std::shared_ptr<BenchCommand> add_benchmark(CLI::App& bench, const char* name, const char* summary,
                                            int peers, Measure measure, int& exit_code,
                                            CLI::App** made) {
  auto command = std::make_shared<BenchCommand>();
  command->peers = peers;
  CLI::App* app = bench.add_subcommand(name, summary);
  app->add_option("--peers", command->peers, "number of peers")
      ->capture_default_str()
      ->check(CLI::Range(1, 65535));
  app->add_flag("--json", command->json, "print one JSON object");
  app->callback([command, measure, &exit_code] {
    auto result = measure(*command);
    exit_code = result.ok() ? *result : print_error(result.error());
  });
  *made = app;
  return command;
}

}  // namespace

void add_bench(CLI::App& app, int& exit_code) {
  CLI::App* bench =
      app.add_subcommand("bench", "measure training, mixing and the runtime on one core")
          ->require_subcommand(1);
  CLI::App* made = nullptr;
  auto train = add_benchmark(*bench, "train", "local steps per second, without mixing", 16,
                             bench_train, exit_code, &made);
  made->add_option("workload", train->workload, "softmax, mlp or cnn")->required();
  made->add_option("--seconds", train->seconds, "duration of the measurement")
      ->capture_default_str()
      ->check(CLI::Range(0.01, 3600.0));
  auto mix = add_benchmark(*bench, "mix", "one mix of all rows, compared with the copy bandwidth",
                           64, bench_mixing, exit_code, &made);
  made->add_option("--length", mix->length, "floats in a row")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 30));
  made->add_option("--pairs", mix->pairs, "number of pairs (mix, copy)")
      ->capture_default_str()
      ->check(CLI::Range(6, 1000));
  auto rounds = add_benchmark(*bench, "runtime", "overhead of a round over training alone", 64,
                              bench_rounds, exit_code, &made);
  made->add_option("--rounds", rounds->rounds, "rounds per run")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000));
  made->add_option("--pairs", rounds->pairs, "number of pairs (run, training alone)")
      ->capture_default_str()
      ->check(CLI::Range(6, 1000));
}

}  // namespace gossamer::cli
