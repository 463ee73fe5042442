#include "peer/runtime/run.hpp"

#include <fmt/format.h>

#include <chrono>

#include "base/id_list.hpp"
#include "gossip/scheduler.hpp"
#include "peer/log/summary.hpp"
#include "peer/runtime/host.hpp"
#include "peer/runtime/startup.hpp"
#include "peer/setup/host_view.hpp"
#include "peer/setup/memory_check.hpp"
#include "peer/setup/virtual_network.hpp"
#include "peer/storage/shards_file.hpp"
#include "peer/watch/run_page.hpp"

namespace gossamer::peer {

std::filesystem::path run_folder(const Config& config) {
  if (!config.local.out.empty()) return config.local.out;
  return std::filesystem::path("runs") / config.run_id();
}

namespace {

/// Why the run has ended before its last round; none if it has not.
std::optional<Error> early_end(const Setup& setup, Host& host) {
  if (host.error()) return host.error();
  const gossip::Round done = host.group().rounds_done();
  if (host.group().stops_after() && done < setup.config.run.rounds)
    return Error{ErrorKind::interrupted, fmt::format("interrupted after round {}", done)};
  if (host.group().finished()) return std::nullopt;
  return Error{ErrorKind::internal,
               fmt::format("the run stands still after round {}: its peers wait for one another; "
                           "please report this, with the configuration",
                           done)};
}

}  // namespace

Result<RunOutcome> run(const Setup& setup, RunRequest request) {
  if (setup.config.run.open)
    return invalid_error(
        "run.open: peers join and leave a network; start a process for each with gossamer peer");
  LinkTraffic traffic;
  HostRequest host_request;
  host_request.hosted = first_ids(setup.nodes());
  host_request.row_offset = request.row_offset;
  host_request.local_links = [&setup](int from, int to) { return link_model(setup, from, to); };
  host_request.ports = [&setup](int node) { return node_model(setup, node); };
  host_request.step_times = step_times(setup);
  host_request.interrupted = request.interrupted;
  host_request.message = request.message;
  GOSSAMER_TRY_STATUS(check_memory(setup, host_request.hosted.size()));
  GOSSAMER_TRY(Startup startup,
               Startup::prepare(setup, {host_request.hosted, request.folder, request.resume,
                                        Host::Clock::virtual_time, request.message}));
  Recorder& recorder = startup.recorder();
  recorder.on_progress = request.on_progress;
  GOSSAMER_TRY(const auto page, open_page(setup, recorder, host_request.hosted,
                                          /*hears_others=*/false, traffic, request.message));
  if (page != nullptr) host_request.traffic = &traffic;
  host_request.checkpointer = startup.checkpointer();

  const auto begin = std::chrono::steady_clock::now();
  gossip::VirtualScheduler scheduler;
  gossip::InlineExecutor executor;
  Host host(setup, scheduler, executor, recorder, host_request);
  const gossip::Round first = startup.rounds().back();
  if (const auto shards = setup.workload->own_shards(); !shards.empty())
    GOSSAMER_TRY_STATUS(record_shards(request.folder, 0, setup.config.run_id(), shards,
                                      setup.workload->standardised_features(), first > 0));
  GOSSAMER_TRY_STATUS(startup.restore(first, host));
  startup.announce(first);
  host.start(Host::Clock::virtual_time);
  scheduler.run();

  setup.device->finish();  // before the clock is read
  const double wall_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::optional<Error> stopped = early_end(setup, host);
  if (stopped && stopped->kind == ErrorKind::data) return *stopped;  // the log cannot be written
  const EndMetrics end = host.end_metrics(wall_seconds, stopped);
  const HostView rows(*setup.device, host.parameter_rows());
  GOSSAMER_TRY_STATUS(recorder.end(end, rows.rows()));

  RunTotals totals{end.reason,     end.rounds,     end.wall_seconds,       end.seconds,
                   end.node_steps, end.bytes_sent, recorder.train_losses()};
  totals.epsilons = recorder.epsilons();
  RunOutcome outcome;
  outcome.stopped = std::move(stopped);
  RowViews workers = rows.rows();
  workers.resize(static_cast<std::size_t>(setup.workers()));
  outcome.summary = make_summary(setup, totals, workers);
  GOSSAMER_TRY_STATUS(
      write_file(request.folder / "summary.json", text_of(outcome.summary, 2) + "\n"));
  request.on_end(outcome.stopped, rows.rows());
  return outcome;
}

}  // namespace gossamer::peer
