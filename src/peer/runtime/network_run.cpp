#include "peer/runtime/network_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <string>
#include <utility>

#include "base/id_list.hpp"
#include "net/options.hpp"
#include "peer/runtime/network_place.hpp"
#include "peer/setup/credentials.hpp"
#include "peer/setup/host_view.hpp"
#include "peer/setup/hosted_ids.hpp"
#include "peer/setup/memory_check.hpp"

namespace gossamer::peer {
Status run_networked(const Setup& setup, const NetworkRunRequest& request) {
  GOSSAMER_TRY_STATUS(check_ids(setup.config, request.hosted));
  GOSSAMER_TRY_STATUS(check_addresses(setup));
  GOSSAMER_TRY_STATUS(net::validate(setup.config.net, setup.nodes(), request.hosted));
  GOSSAMER_TRY(std::optional<net::Credentials> credentials,
               load_credentials(setup.config.net, request.hosted));
  GOSSAMER_TRY_STATUS(check_memory(setup, request.hosted.size()));
  setup.workload->set_one_at_a_time(setup.config.local.deterministic);
  GOSSAMER_TRY(Startup startup,
               Startup::prepare(setup, {request.hosted, request.folder, request.resume,
                                        Host::Clock::real_time, request.message, request.offered}));
  if (startup.is_needless()) return startup.discard();
  LinkTraffic traffic;
  GOSSAMER_TRY(const auto page, open_page(setup, startup.recorder(), request.hosted,
                                          shares_figures(setup), traffic, request.message));
  return NetworkRun(setup, request, std::move(startup), std::move(credentials),
                    RunWatch{traffic, page.get()})
      .run();
}

NetworkRun::NetworkRun(const Setup& setup, const NetworkRunRequest& request, Startup startup,
                       std::optional<net::Credentials> credentials, RunWatch watch)
    : setup_(setup),
      request_(request),
      startup_(std::move(startup)),
      credentials_(std::move(credentials)),
      watch_(watch),
      pairs_(pairs_of(*setup.algorithm, *setup.schedule, request.hosted)) {
  shared_memory_ = setup.share_rows();  // before the rows are allocated
  startup_.recorder().on_progress = request.on_progress;
  thread_ = std::make_unique<ComputeThread>(scheduler_, *setup.device, [this](const Error& error) {
    if (error.kind == ErrorKind::lost_peer) return withdraw(error);
    fail(computing_failed(error.message));
  });
  host_ = std::make_unique<Host>(setup, scheduler_, *thread_, startup_.recorder(), host_request());
  if (!setup.device->host_accessible())
    staging_ = std::make_unique<Staging>(*setup.device, host_->group().exchange(), staging_hooks());
}

HostRequest NetworkRun::host_request() {
  HostRequest request;
  request.hosted = request_.hosted;
  request.remote_traffic = [this](int peer) {
    const net::SocketTraffic traffic = network_->traffic(peer);
    return gossip::ByteCounters{traffic.data_bytes_sent, traffic.data_bytes_received};
  };
  request.on_arrival = [this](gossip::Round first) { return startup_.join_at(first); };
  request.on_finished = [this] { scheduler_.stop(); };
  request.traffic = &watch_.traffic;
  request.checkpointer = startup_.checkpointer();
  request.message = request_.message;
  return request;
}

Staging::Hooks NetworkRun::staging_hooks() {
  Staging::Hooks hooks;
  hooks.post = [this](std::function<void()> report) {
    scheduler_.post_external(std::move(report));
  };
  hooks.on_protocol_violation = [this](const gossip::ChunkHeader& header, Error why) {
    host_->group().exchange().faults().protocol_violation(header, std::move(why));
  };
  hooks.validate_incoming = [this](const gossip::Chunk& chunk) {
    return host_->group().exchange().validator().validate_incoming(chunk.header, chunk.values);
  };
  hooks.validate_outgoing = [this](const gossip::Chunk& chunk) {
    return host_->group().exchange().validator().validate_outgoing_chunk(chunk.header,
                                                                         chunk.values);
  };
  hooks.on_fault = [this](Error error) { fail(with_advice(setup_, std::move(error))); };
  hooks.gpu_of = [this](int peer) { return host_->group().gpu_of(peer); };
  return hooks;
}

net::NetworkSetup NetworkRun::network_setup() {
  net::NetworkSetup network;
  network.options = setup_.config.net;
  if (net::NetOptions& net = network.options;
      startup_.finished() != Startup::Finished::nothing && net.failure_timeout < net.join_timeout) {
    net.join_timeout = net.failure_timeout;
    network.words.join_limit = "net.failure_timeout";
  }
  network.credentials = std::move(credentials_);
  network.identity = identity_of(setup_);
  network.hosted = request_.hosted;
  network.listening = request_.listening;
  network.pairs = pairs_;
  if (const topology::Participants& begin = setup_.schedule->participants(); begin.is_open()) {
    for (const auto& [here, there] : pairs_)
      if (!begin.takes_part(there, 0)) network.later.elsewhere.insert(there);
    network.later.here = !begin.takes_part(request_.hosted.front(), 0);
  }
  network.memory.rows = shared_memory_;
  network.message = request_.message;
  network.words.name_of = request_.name_of;
  network.fault = [this](const Error& error) { host_->fail(error); };
  network.on_link_lost = [this](int here, int there, const Error& why) {
    if (setup_.tolerates_peer_loss())
      host_->group().engine(here).membership().on_link_lost(there, why.message);
    return setup_.tolerates_peer_loss();
  };
  network.on_link_restored = [this](int here, int there) {
    host_->group().engine(here).membership().on_link_restored(there);
  };
  network.on_peer_left = [this](int here, int there) {
    if (setup_.tolerates_peer_loss()) host_->group().engine(here).membership().on_peer_left(there);
  };
  network.on_route = [this](int here, int there, const net::Route& route) {
    host_->log().record_route(host_->group().engine(here), there, route);
  };
  network.on_figures = [this](int here, int there, const net::Figures& figures) {
    return figures_ ? figures_->receive(here, there, figures) : Status();
  };
  network.on_tick = [this](gossip::Time counted) { host_->group().exchange().on_tick(counted); };
  if (staging_)
    network.memory.chunks = {
        [&device = *setup_.device](std::size_t bytes) { return device.allocate_host(bytes); },
        [&device = *setup_.device](void* memory) { device.release_host(memory); }};
  return network;
}

Status NetworkRun::make_network() {
  gossip::Receiver& receiver =
      staging_ ? static_cast<gossip::Receiver&>(*staging_) : host_->group().exchange();
  GOSSAMER_TRY(network_, net::Network::make(scheduler_, network_setup(), receiver));
  host_->group().exchange().faults().on_protocol_violation = [this](int here, int there,
                                                                    const Error& why) {
    network_->end_link(here, there, net::Network::Blame::violation, why);
  };
  host_->group().exchange().faults().on_overdue = [this](int here, int there, const Error& why) {
    network_->end_link(here, there, net::Network::Blame::overdue, why);
  };
  host_->group().exchange().faults().on_parted = [this](int here, int there) {
    network_->end_link(here, there, net::Network::Blame::left, {ErrorKind::lost_peer, {}});
  };
  host_->group().exchange().faults().on_reset = [this](int here, int there, const Error& why) {
    if (host_->group().hosts(there))
      scheduler_.after(gossip::Time(0), [this, here, there, why] {
        host_->group().reset_link(here, there, why.message);
      });
    else network_->end_link(here, there, net::Network::Blame::none, why);
  };
  if (const bool shares = shares_figures(setup_); shares || watch_.page != nullptr)
    figures_.emplace(setup_,
                     FigureRelay::Parts{scheduler_, *network_, startup_.recorder(), watch_.traffic,
                                        watch_.page ? &watch_.page->view() : nullptr, shares,
                                        [this] { return host_->links_lost_elsewhere(); },
                                        request_.hosted, pairs_});
  if (const std::string& path = setup_.config.net.members; !path.empty()) {
    const auto changed = [this](net::MemberList list) { network_->set_members(std::move(list)); };
    GOSSAMER_TRY(members_watch_, MembersWatch::make(scheduler_, path, changed, request_.message));
  }
  if (request_.stop.stop_possible())
    on_stop_.emplace(request_.stop, [this] {
      scheduler_.post_external([this] { withdraw(stopped(request_.hosted, "program")); });
    });
  else
    scheduler_.on_interrupt([this](int signal) { on_signal(signal); }, members_watch_ != nullptr);
  if (setup_.config.run.open)
    on_leave_.emplace(request_.leave,
                      [this] { scheduler_.post_external([this] { leave_for_good(); }); });
  return {};
}

/// Gives the exchange its links to other processes. Before any link is lost: partners are
/// notified of a loss over the others.
void NetworkRun::connect_links() {
  for (const auto& [here, there] : pairs_) {
    gossip::Link& link = watch_.traffic.counted(here, there, network_->link(here, there));
    host_->group().exchange().connect(here, there,
                                      staging_ ? staging_->link(here, there, link) : link);
  }
}

Status NetworkRun::run() {
  if (Status made = make_network(); !made.ok()) {
    startup_.recorder().discard();
    return made;
  }
  const Status joined = network_->join();
  if (!joined.ok() && !host_->error()) host_->fail(joined.error());
  connect_links();
  Start start = Start::by_joining;
  if (!host_->error() && !network_->late()) {
    const auto chosen = choose_start();
    if (chosen.ok()) start = *chosen;
    else if (!host_->error()) fail(chosen.error());
  }
  if (!host_->error() && start == Start::by_joining && !setup_.tolerates_peer_loss())
    host_->fail(cannot_join(setup_));
  if (!host_->error() && network_->late())
    if (const Status read = adopt_shards(); !read.ok()) fail(read.error());
  const bool began = !host_->error();
  if (began) request_.on_start(start == Start::by_joining);
  if (began) train(start);
  if (host_->error() && !withdrawn_) network_->abort(for_others(*host_->error(), request_.hosted));
  if (!withdrawn_) network_->leave();
  report_refused(setup_.config.net, network_->refused(), request_.message);
  return finish(began);
}

/// Agrees with the other processes on the round to start at, and on the shards where each peer
/// has its own data. This process joins the others instead if they have begun, or resume from a
/// round of which it has no states.
Result<NetworkRun::Start> NetworkRun::choose_start() {
  GOSSAMER_TRY(StartAgreement agreement,
               StartAgreement::make(setup_, request_.hosted, startup_.rounds()));
  GOSSAMER_TRY_STATUS(network_->all_gather(agreement.all_gather()));
  if (network_->late()) return Start::by_joining;
  GOSSAMER_TRY(const StartRoundAgreement::Outcome agreed, agreement.round());
  GOSSAMER_TRY(const Shards shards, agreement.shards());
  if (!shards.empty())
    GOSSAMER_TRY_STATUS(compute([this, shards, resumed = agreed.round > 0]() -> Status {
      GOSSAMER_TRY_STATUS(record_shards(request_.folder, request_.hosted.front(),
                                        setup_.config.run_id(), shards,
                                        setup_.workload->standardised_features(), resumed));
      setup_.workload->agree(shards);
      return {};
    }));
  return start_at(agreed);
}

// For a latecomer: the others have agreed.
Status NetworkRun::adopt_shards() {
  if (setup_.workload->own_shards().empty()) return {};
  return compute([this]() -> Status {
    GOSSAMER_TRY(
        const Shards known,
        read_shards(request_.folder, request_.hosted.front(), setup_.config.run_id(),
                    setup_.workload->own_shards(), setup_.workload->standardised_features()));
    setup_.workload->agree(known);
    return {};
  });
}

Result<NetworkRun::Start> NetworkRun::start_at(const StartRoundAgreement::Outcome& agreed) {
  if (std::ranges::binary_search(agreed.without, request_.hosted.front())) {
    request_.message(joins_resumed_text(setup_, agreed.without.size(), agreed.round));
    return Start::by_joining;
  }
  Pairs joiners = pairs_;
  std::erase_if(joiners, [&](const auto& pair) {
    return !std::ranges::binary_search(agreed.without, pair.second);
  });
  host_->begin_at(agreed.round, joiners);
  for (const auto& [here, there] : connected(std::move(joiners)))
    host_->group().engine(here).membership().on_link_restored(there);
  GOSSAMER_TRY_STATUS(restore(agreed.round));
  startup_.announce(agreed.round);
  return Start::at_agreed_round;
}

Status NetworkRun::restore(gossip::Round round) {
  return compute([this, round] { return startup_.restore(round, *host_); });
}

/// Does what may take long on the thread that computes: heartbeats are sent meanwhile.
Status NetworkRun::compute(std::function<Status()> work) {
  // Shared, because an interrupt may end the wait before the work.
  const auto result = std::make_shared<std::pair<Status, bool>>();
  thread_->execute([result, work = std::move(work)] { result->first = work(); },
                   [result] { result->second = true; });
  scheduler_.run_until([&] { return result->second || host_->error(); });
  return result->second ? result->first : Status(*host_->error());
}

void NetworkRun::train(Start start) {
  network_->release_chunks();  // the links of a latecomer are those that are connected from here on
  if (start == Start::by_joining) host_->join(connected(pairs_));
  else host_->start(Host::Clock::real_time);
  if (std::exchange(phase_, Phase::begun) == Phase::before_and_leaves) leave_for_good();
  try {
    scheduler_.run();
    if (staging_) scheduler_.run_io_until([this] { return staging_->idle() || host_->error(); });
  } catch (const std::exception& failure) {
    // Memory or a device: the other processes are notified, and the rows as they stand are kept.
    fail(computing_failed(failure.what()));
  }
}

Error NetworkRun::computing_failed(std::string_view why) const {
  return {ErrorKind::internal,
          fmt::format("computing on {} failed: {}", setup_.device->description(), why)};
}

/// Writes the final record. A run that did not begin leaves nothing.
Status NetworkRun::finish(bool began) {
  if (host_->error()) setup_.workload->interrupt();
  thread_.reset();  // a run that ended early may compute a step, which writes the rows read below
  if (staging_) staging_->close();
  Recorder& recorder = startup_.recorder();
  if (!began || was_never_whole()) {
    recorder.discard();
    return startup_.nobody_came(*host_->error());
  }
  std::optional<HostView> rows;
  try {
    rows.emplace(*setup_.device, host_->parameter_rows());
  } catch (const std::exception& failure) {
    // The device failed and gives no rows, so the log ends as that of a process that was killed.
    host_->fail(computing_failed(failure.what()));
  }
  // A peer that leaves an open run has no complete run, and that is no error.
  const gossip::Round left_out = host_->group().rounds_left_out();
  if (left_out > 0 && !host_->error() && host_->end_metrics(0, std::nullopt).reason != kLeft)
    host_->fail(
        {ErrorKind::lost_peer, left_out_text(request_.hosted, left_out, setup_.config.run.rounds)});
  EndMetrics end = host_->end_metrics(gossip::seconds(scheduler_.now()), host_->error());
  end.refused = network_->refused();
  end.lending_links.emplace();
  for (const net::LinkReport& link : network_->links())
    if (link.lends) end.lending_links->emplace_back(link.here, link.there);
  const Status written = rows ? recorder.end(end, rows->rows()) : Status();
  if (!host_->error() && written.ok()) relay_for_others(end.wall_seconds);
  on_stop_.reset(), on_leave_.reset(), figures_.reset();
  network_.reset();
  request_.on_end(written.ok() ? host_->error() : written.error(),
                  rows ? rows->rows() : RowViews());
  return host_->error() ? Status(*host_->error()) : written;
}

void NetworkRun::fail(Error error) {
  if (withdrawn_) return;
  if (phase_ == Phase::over) return network_->abort(std::move(error));
  host_->fail(std::move(error));
  network_->abort(for_others(*host_->error(), request_.hosted));
}

/// Peers that are connected through this process may have rounds left. Two that never end keep it
/// for as long again as its own run took, or for net.row_timeout.
void NetworkRun::relay_for_others(double seconds) {
  phase_ = Phase::over;
  network_->relay_on(
      gossip::from_seconds(std::max(seconds, setup_.config.net.row_timeout)),
      [this](std::size_t pairs) { request_.message(relays_text(request_.hosted, pairs)); });
}

void NetworkRun::on_signal(int signal) {
  if (signal == SIGHUP && members_watch_) return members_watch_->reload();
  if (signal == SIGUSR1 && setup_.config.run.open) return leave_for_good();
  fail(stopped(request_.hosted, fmt::format("operator (SIG{})", ::sigabbrev_np(signal))));
}

/// The peer goes on until the round from which on the others know that it takes no part.
void NetworkRun::leave_for_good() {
  const int peer = request_.hosted.front();
  if (phase_ < Phase::begun) {
    phase_ = Phase::before_and_leaves;
    return request_.message(fmt::format("peer {} leaves once it has begun", peer));
  }
  const bool leaves = !host_->error() && host_->group().engine(peer).membership().leave();
  if (!leaves)
    request_.message(fmt::format(
        "peer {} does not leave: it takes no part, leaves already, or no other peer would stay",
        peer));
}

/// Closes the connections without a word where the others continue after a loss; else they are
/// notified.
void NetworkRun::withdraw(Error error) {
  if (phase_ == Phase::over || !setup_.tolerates_peer_loss()) return fail(std::move(error));
  withdrawn_ = true;
  host_->fail(std::move(error));
}

NetworkRun::Pairs NetworkRun::connected(Pairs pairs) const {
  std::erase_if(pairs,
                [this](const auto& pair) { return !network_->connected(pair.first, pair.second); });
  return pairs;
}

/// The network ended before all of it had joined. A process whose own neighbours had joined may
/// have started by then.
bool NetworkRun::was_never_whole() const {
  if (!host_->error() || host_->group().rounds_done() > host_->first_round()) return false;
  const ErrorKind kind = host_->error()->kind;
  return kind == ErrorKind::join_timeout || kind == ErrorKind::rejected ||
         kind == ErrorKind::network || kind == ErrorKind::interrupted;
}

}  // namespace gossamer::peer
