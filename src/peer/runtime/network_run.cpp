#include "peer/runtime/network_run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <memory>

#include "net/network.hpp"
#include "peer/runtime/agreement.hpp"
#include "peer/runtime/compute_thread.hpp"
#include "peer/runtime/host.hpp"
#include "peer/runtime/host_view.hpp"
#include "peer/runtime/staging.hpp"
#include "peer/runtime/startup.hpp"

namespace gossamer::peer {
namespace {

/// (hosted node, node elsewhere) that talk to each other.
std::vector<std::pair<int, int>> pairs_of(const Setup& setup, const std::vector<int>& hosted) {
  std::vector<std::pair<int, int>> pairs;
  for (int here : hosted)
    for (int there : setup.algorithm->partners(here, *setup.schedule))
      if (!std::binary_search(hosted.begin(), hosted.end(), there)) pairs.emplace_back(here, there);
  return pairs;
}

net::NetworkSetup network_setup(const Setup& setup, const NetworkRunRequest& request) {
  net::NetworkSetup network;
  network.options = setup.config.net;
  network.identity.run_id = setup.config.run_id();
  network.identity.peers = setup.nodes();
  network.identity.topology =
      fmt::format("{} {}", setup.config.topology.kind, setup.schedule->hash());
  network.identity.model = fmt::format("{} {}", setup.config.model.kind, setup.model_hash());
  network.identity.configuration = setup.configuration_hash();
  network.hosted = request.hosted;
  network.pairs = pairs_of(setup, request.hosted);
  network.message = request.message;
  return network;
}

Status check_hosted(const Setup& setup, const std::vector<int>& hosted) {
  const int n = setup.config.run.peers, s = setup.servers();
  if (setup.algorithm->needs().one_node)
    return Error{ErrorKind::invalid,
                 fmt::format("algorithm.kind: '{}' runs in one process: use gossamer run",
                             setup.config.algorithm.kind)};
  for (int id : hosted)
    if (id < 0 || id >= setup.nodes())
      return Error{
          ErrorKind::invalid,
          fmt::format("peer id {} is not one of run.peers = {}: ids are 0 to {}{}", id, n, n - 1,
                      s == 0   ? ""
                      : s == 1 ? fmt::format(", and {} for the server of '{}'", n,
                                             setup.config.algorithm.kind)
                               : fmt::format(", and {} to {} for the servers of '{}'", n, n + s - 1,
                                             setup.config.algorithm.kind))};
  return {};
}

Status check_addresses(const Setup& setup) {
  const std::size_t given = setup.config.net.peers.size();
  if (given == 0 || setup.servers() == 0 || given == static_cast<std::size_t>(setup.nodes()))
    return {};
  return Error{ErrorKind::invalid, fmt::format("net.peers: {} addresses for {} peers and, after "
                                               "them, {} servers of '{}'; give one for each",
                                               given, setup.config.run.peers, setup.servers(),
                                               setup.config.algorithm.kind)};
}

/// Whether the network ended before all of it was there. A process whose own neighbours were has
/// begun by then.
bool never_whole(const Host& host) {
  if (!host.error() || host.rounds_done() > host.first_round()) return false;
  const ErrorKind kind = host.error()->kind;
  return kind == ErrorKind::join_timeout || kind == ErrorKind::rejected ||
         kind == ErrorKind::network || kind == ErrorKind::interrupted;
}

/// The reason as another process tells it: what happened to this machine's files happened to this
/// peer.
Error for_others(Error error, const std::vector<int>& hosted) {
  if (error.kind == ErrorKind::data || error.kind == ErrorKind::internal)
    error.message = fmt::format("peer {} failed: {}", fmt::join(hosted, ", "), error.message);
  return error;
}

Error nobody_joins(const Setup& setup) {
  return {ErrorKind::rejected,
          fmt::format("the network runs already, and nobody can join it: {}",
                      setup.config.net.on_loss == "stop"
                          ? std::string("net.on_loss is stop")
                          : fmt::format("algorithm '{}' needs everybody from the start",
                                        setup.config.algorithm.kind))};
}

std::vector<std::pair<int, int>> connected_pairs(const net::Network& network,
                                                 std::vector<std::pair<int, int>> pairs) {
  std::erase_if(
      pairs, [&network](const auto& pair) { return !network.connected(pair.first, pair.second); });
  return pairs;
}

/// Finds the round at which the processes begin, and puts this one's nodes there; false where it is
/// to join others instead, who have begun, or go on from a round of which it has no states.
Result<bool> agree_and_settle(const Setup& setup, const NetworkRunRequest& request,
                              net::Network& network, net::RealScheduler& scheduler,
                              ComputeThread& thread, Startup& beginning, Host& host) {
  Agreement agreement(request.hosted, setup.nodes(), beginning.rounds());
  net::AllGather conference;
  conference.exchanges = exchanges_to_reach_all(setup);
  conference.say = [&agreement] { return agreement.say(); };
  conference.hear = [&agreement](const std::string& statement) {
    return agreement.hear(statement);
  };
  GOSSAMER_TRY_STATUS(network.all_gather(std::move(conference)));
  if (network.late()) return false;
  GOSSAMER_TRY(const Agreement::Outcome agreed, agreement.outcome(setup.tolerates_peer_loss()));
  const auto [round, without] = agreed;
  if (std::ranges::binary_search(without, request.hosted.front())) {
    request.message(
        fmt::format("{} of {} nodes go on from their checkpoints of round {}; this process has "
                    "none of that round, and joins them",
                    setup.nodes() - static_cast<int>(without.size()), setup.nodes(), round));
    return false;
  }
  auto joiners = pairs_of(setup, request.hosted);
  std::erase_if(joiners, [&absent = without](const auto& pair) {
    return !std::ranges::binary_search(absent, pair.second);
  });
  host.begin_at(round, joiners);
  for (const auto& [here, there] : connected_pairs(network, std::move(joiners)))
    host.group().engine(here).restore_link(there);
  // Reading may take long: heartbeats go on beside it.
  struct Settled {
    Status status;
    bool done = false;
  };
  const auto settled =
      std::make_shared<Settled>();  // an interrupt may end the wait before the reading
  thread.execute(
      [&beginning, &host, settled, round] { settled->status = beginning.settle(round, host); },
      [settled] { settled->done = true; });
  scheduler.run_until([&] { return settled->done || host.error(); });
  if (!settled->done) return *host.error();
  GOSSAMER_TRY_STATUS(settled->status);
  beginning.announce(round);
  return true;
}

}  // namespace

Status run_networked(const Setup& setup, const NetworkRunRequest& request) {
  GOSSAMER_TRY_STATUS(check_hosted(setup, request.hosted));
  GOSSAMER_TRY_STATUS(check_addresses(setup));
  GOSSAMER_TRY_STATUS(net::validate(setup.config.net, setup.nodes(), request.hosted));
  GOSSAMER_TRY_STATUS(check_memory(setup, request.hosted.size()));
  GOSSAMER_TRY(Startup beginning,
               Startup::prepare(setup, {request.hosted, request.folder, request.resume,
                                        Host::Clock::real_time, request.message}));
  Recorder& recorder = beginning.recorder();
  recorder.on_progress = request.on_progress;

  // What is declared later ends earlier: the thread first, then the network, then the rows that
  // both read, then the buffers between the two.
  net::RealScheduler scheduler;
  std::unique_ptr<Staging> staging;  // null where the network can read the rows
  std::unique_ptr<Host> host;
  std::unique_ptr<net::Network> network;
  const auto fail = [&](Error error) {
    host->fail(std::move(error));
    network->abort(for_others(*host->error(), request.hosted));
  };
  auto thread =
      std::make_unique<ComputeThread>(scheduler, *setup.device, [&](const std::string& what) {
        fail({ErrorKind::internal,
              fmt::format("computing on {} failed: {}", setup.device->description(), what)});
      });
  HostRequest host_request;
  host_request.hosted = request.hosted;
  host_request.remote_traffic = [&network](int peer) {
    const net::Traffic traffic = network->traffic(peer);
    return gossip::Traffic{traffic.data_bytes_sent, traffic.data_bytes_received};
  };
  host_request.on_arrival = [&beginning](gossip::Round first) { return beginning.join(first); };
  host_request.on_finished = [&scheduler] { scheduler.stop(); };
  host_request.checkpointer = beginning.checkpointer();
  host_request.message = request.message;
  host = std::make_unique<Host>(setup, scheduler, *thread, recorder, host_request);
  if (!setup.device->host_accessible())
    staging = std::make_unique<Staging>(
        *setup.device, host->group().exchange(),
        Staging::Hooks{
            .post =
                [&](std::function<void()> report) { scheduler.post_external(std::move(report)); },
            .on_protocol_violation =
                [&](const gossip::ChunkHeader& head, Error why) {
                  host->group().exchange().breach(head, std::move(why));
                },
            .arrives =
                [&host](const gossip::Chunk& c) {
                  return host->group().exchange().validate_incoming(c.head, c.values);
                },
            .departs =
                [&host](const gossip::Chunk& c) {
                  return host->group().exchange().validate_outgoing_chunk(c.head, c.values);
                },
            .on_fault = [&](Error error) { fail(with_advice(setup, std::move(error))); },
            .gpu_of = [&host](int peer) { return host->group().gpu_of(peer); }});
  gossip::Receiver& receiver =
      staging ? static_cast<gossip::Receiver&>(*staging) : host->group().exchange();

  net::NetworkSetup described = network_setup(setup, request);
  described.fault = [&host](const Error& error) { host->fail(error); };
  described.lost = [&host, &setup](int here, int there, const Error& why) {
    if (setup.tolerates_peer_loss()) host->group().engine(here).lose_link(there, why.message);
    return setup.tolerates_peer_loss();
  };
  described.back = [&host](int here, int there) { host->group().engine(here).restore_link(there); };
  described.left = [&host, &setup](int here, int there) {
    if (setup.tolerates_peer_loss()) host->group().engine(here).close_link(there);
  };
  if (staging)
    described.chunk_memory = {
        [&device = *setup.device](std::size_t bytes) { return device.allocate_host(bytes); },
        [&device = *setup.device](void* memory) { device.release_host(memory); }};
  const auto pairs = described.pairs;
  auto made = net::Network::make(scheduler, std::move(described), receiver);
  if (!made.ok()) {
    recorder.discard();
    return made.error();
  }
  network = std::move(made).value();
  host->group().exchange().on_protocol_violation =
      [&network](int here, int there, const Error& why) { network->refuse(here, there, why); };
  scheduler.on_interrupt([&](int signal) {
    fail({ErrorKind::interrupted,
          fmt::format("peer {} was stopped by its operator ({})", fmt::join(request.hosted, ", "),
                      signal == SIGTERM  ? "SIGTERM"
                      : signal == SIGHUP ? "SIGHUP"
                                         : "SIGINT")});
  });

  Status joined = network->join();
  if (!joined.ok() && !host->error()) host->fail(joined.error());
  for (const auto& [here, there] : pairs) {  // before anything is lost: the others are told of it
    gossip::Link& link = network->link(here, there);
    host->group().exchange().connect(here, there,
                                     staging ? staging->link(here, there, link) : link);
  }
  bool joins = network->late();
  if (!host->error() && !joins) {
    const auto settled =
        agree_and_settle(setup, request, *network, scheduler, *thread, beginning, *host);
    if (settled.ok()) joins = !*settled;
    else if (!host->error()) fail(settled.error());
  }
  if (!host->error() && joins && !setup.tolerates_peer_loss()) host->fail(nobody_joins(setup));
  const bool began = !host->error();
  if (began) {
    if (joins) host->join(connected_pairs(*network, pairs));
    else host->start(Host::Clock::real_time);
    network->proceed();
    try {
      scheduler.run();
      if (staging) scheduler.run_io_until([&] { return staging->idle() || host->error(); });
    } catch (const std::exception&
                 failure) {  // memory, or a device: the others are told, and what there is is kept
      fail({ErrorKind::internal,
            fmt::format("peer {} failed: {}", fmt::join(request.hosted, ", "), failure.what())});
    }
  }
  if (host->error()) network->abort(for_others(*host->error(), request.hosted));
  network->leave();
  thread.reset();  // a run that ended early may have left a step under way: it writes the rows that
                   // are read next
  if (staging) staging->close();
  if (!began || never_whole(*host)) {
    recorder.discard();
    return *host->error();
  }
  const HostView rows(*setup.device, host->parameter_rows());
  const double seconds = std::chrono::duration<double>(scheduler.now()).count();
  const Status written = recorder.end(host->end_metrics(seconds, host->error()), rows.rows());
  if (host->error()) return *host->error();
  return written;
}

}  // namespace gossamer::peer
