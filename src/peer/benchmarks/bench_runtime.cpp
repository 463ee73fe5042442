#include "peer/benchmarks/bench_runtime.hpp"

#include <filesystem>
#include <numeric>
#include <string>

#include "base/rows.hpp"
#include "base/temporary_folder.hpp"
#include "gossip/scheduler.hpp"
#include "peer/benchmarks/bench_statistics.hpp"
#include "peer/config/config.hpp"
#include "peer/log/recorder.hpp"
#include "peer/runtime/host.hpp"
#include "peer/setup/setup.hpp"

namespace gossamer::peer {
namespace {

Result<Setup> make_benchmark_setup(int peers, int rounds) {
  GOSSAMER_TRY(
      Config config,
      load_config("", {"run.peers=" + std::to_string(peers), "run.rounds=" + std::to_string(rounds),
                       "topology.kind=ring", "algorithm.kind=dpsgd", "model.kind=softmax",
                       "data.kind=digits", "data.partition=iid", "data.batch=16", "local.threads=1",
                       "log.every=0"}));
  return make_setup(std::move(config));
}

/// CPU seconds of the rounds of a run, from the end of the first network record to the end of the
/// last.
Result<double> time_run(const Setup& setup, const std::filesystem::path& folder) {
  std::filesystem::remove_all(folder);
  HostRequest request;
  request.hosted.resize(static_cast<std::size_t>(setup.config.run.peers));
  std::iota(request.hosted.begin(), request.hosted.end(), 0);
  GOSSAMER_TRY(const auto recorder, Recorder::create(setup, request.hosted, folder, "virtual"));
  // There are two network records, one before the first round and one after the last. The time is
  // taken between them.
  double begin = 0, end = 0;
  recorder->on_progress = [&](const Json& record) {
    (record["round"] == 0 ? begin : end) = cpu_seconds();
  };
  gossip::VirtualScheduler scheduler;
  gossip::InlineExecutor executor;
  Host host(setup, scheduler, executor, *recorder, request);
  host.start(Host::Clock::virtual_time);
  scheduler.run();
  if (host.error()) return *host.error();
  return end - begin;
}

double time_training(const Setup& setup) {
  const auto n = static_cast<std::size_t>(setup.config.run.peers);
  Rows<float> parameters(n, setup.parameters), gradients(n, setup.parameters);
  std::vector<gossip::TrainRequest> requests(n);
  std::vector<gossip::TrainRequest*> batch;
  for (std::size_t i = 0; i < n; ++i) {
    setup.workload->initialise(static_cast<int>(i), parameters.row(i));
    requests[i].peer = requests[i].shard_of = static_cast<int>(i);
    requests[i].x = parameters.row(i);
    requests[i].gradient = gradients.row(i);
    batch.push_back(&requests[i]);
  }
  return cpu_seconds_of([&] {
    for (std::uint64_t round = 0; round < setup.config.run.rounds; ++round) {
      for (auto& request : requests) request.step = round;
      setup.workload->trainer()->run(gossip::TrainOperation::local_steps, batch);
    }
  });
}

}  // namespace

Result<RuntimeBenchmark> bench_runtime(int peers, int rounds, int pairs) {
  GOSSAMER_TRY(const Setup setup, make_benchmark_setup(peers, rounds));
  GOSSAMER_TRY(const TemporaryFolder temporary, TemporaryFolder::make());
  const std::filesystem::path folder = temporary.path() / "run";
  RuntimeBenchmark result;
  result.peers = peers;
  result.rounds = rounds;
  const double node_rounds = static_cast<double>(peers) * rounds;
  std::vector<double> training;
  for (int pair = -1; pair < pairs; ++pair) {
    GOSSAMER_TRY(const double whole, time_run(setup, folder));
    const double alone = time_training(setup);
    if (pair < 0) continue;  // the first pair is a warm-up
    result.microseconds.push_back((whole - alone) / node_rounds * 1e6);
    training.push_back(alone / node_rounds * 1e6);
  }
  const MedianInterval interval = median_interval(result.microseconds);
  result.median = interval.median;
  result.low = interval.low;
  result.high = interval.high;
  result.training_microseconds = median_interval(training).median;
  return result;
}

}  // namespace gossamer::peer
