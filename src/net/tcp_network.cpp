#include "net/tcp_network.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.hpp"

namespace gossamer::net {

using namespace std::chrono_literals;

namespace {

constexpr gossip::Time kKeepEvery =
    1s;  // a look at each of our files in the rendezvous folder, when all are there

}  // namespace

Result<std::unique_ptr<Network>> Network::make(RealScheduler& scheduler, NetworkSetup setup,
                                               gossip::Receiver& receiver) {
  GOSSAMER_CHECK(!setup.hosted.empty() && std::ranges::is_sorted(setup.hosted),
                 "hosted peers, ascending");
  std::set<std::pair<int, int>> seen;
  for (const auto& [local, remote] : setup.pairs) {
    GOSSAMER_CHECK(std::ranges::binary_search(setup.hosted, local),
                   "a pair begins at a hosted peer");
    GOSSAMER_CHECK(!std::ranges::binary_search(setup.hosted, remote),
                   "a pair ends at a peer elsewhere");
    GOSSAMER_CHECK(remote >= 0 && remote < setup.identity.peers,
                   "a pair ends at a peer of the network");
    GOSSAMER_CHECK(seen.insert({local, remote}).second, "a pair given twice");
  }
  GOSSAMER_TRY_STATUS(validate(setup.options, setup.identity.peers, setup.hosted));
  return std::unique_ptr<Network>(
      std::make_unique<TcpNetwork>(scheduler, std::move(setup), receiver));
}

TcpNetwork::TcpNetwork(RealScheduler& scheduler, NetworkSetup setup, gossip::Receiver& receiver)
    : scheduler_(scheduler),
      setup_(std::move(setup)),
      receiver_(receiver),
      failure_timeout_(seconds(setup_.options.failure_timeout)) {
  for (int peer : setup_.hosted) traffic_[peer];
  for (const auto& [local, remote] : setup_.pairs) {
    Edge& edge = edges_[{local, remote}];
    edge.local = local;
    edge.remote = remote;
  }
}

TcpNetwork::~TcpNetwork() {
  for (const auto& timer :
       {tick_timer_, report_timer_, release_timer_, grace_timer_, refuse_timer_})
    scheduler_.cancel(timer);
}

void TcpNetwork::Edge::send(gossip::Chunk chunk) {
  GOSSAMER_CHECK(session != nullptr || lost, "a chunk before the network was joined");
  if (lost) return;
  if (begun && chunk.head.control == gossip::ControlMessage::none) {
    if (chunk.head.offset == 0) begun->insert(chunk.head.channel);
    else if (!begun->contains(chunk.head.channel)) return;
  }
  session->send(std::move(chunk));
}

const TcpNetwork::Edge* TcpNetwork::find_edge(int local, int remote) const {
  const auto found = edges_.find({local, remote});
  return found == edges_.end() ? nullptr : &found->second;
}

TcpNetwork::Edge* TcpNetwork::find_edge(int local, int remote) {
  return const_cast<Edge*>(std::as_const(*this).find_edge(local, remote));
}

gossip::Link& TcpNetwork::link(int from, int to) {
  Edge* edge = find_edge(from, to);
  GOSSAMER_CHECK(edge != nullptr, "a link that the setup does not name");
  return *edge;
}

bool TcpNetwork::connected(int here, int there) const {
  const Edge* edge = find_edge(here, there);
  GOSSAMER_CHECK(edge != nullptr, "a pair that the setup does not name");
  return edge->connected() && !edge->lost && !edge->session->heard_goodbye();
}

void TcpNetwork::refuse(int here, int there, const Error& why) {
  const Edge* edge = find_edge(here, there);
  GOSSAMER_CHECK(edge != nullptr, "a pair that the setup does not name");
  if (!edge->connected()) return;
  refusals_.push_back({here, there, edge->session->id(), why.message});
  if (refusals_.size() > 1) return;
  // Who refuses may be in the middle of a mix, and what is lost is told to it.
  refuse_timer_ = scheduler_.after(0ns, [this] {
    for (const Refusal& refusal : std::exchange(refusals_, {}))
      if (Edge& edge = *find_edge(refusal.here, refusal.there);
          edge.connected() && edge.session->id() == refusal.session)
        edge.session->misuse(refusal.why);
  });
}

Traffic TcpNetwork::traffic(int peer) const { return traffic_.at(peer); }

Status TcpNetwork::deliver(gossip::Chunk chunk) { return receiver_.deliver(std::move(chunk)); }

/// Looks after silences and heartbeats, often enough for both.
void TcpNetwork::tick() {
  const gossip::Time interval = std::clamp<gossip::Time>(failure_timeout_ / 16, 5ms, 250ms);
  const gossip::Time now = scheduler_.now();
  // When this process itself was held up (stopped, or starved of its processor), what the others
  // sent lies unread.
  const gossip::Time counted = std::min(now - ticked_, 2 * interval);
  ticked_ = now;
  for (auto& [pair, edge] : edges_)
    if (edge.session) edge.session->tick(now, counted);
  if (rendezvous_ && (!joined_ || now - kept_ >= kKeepEvery)) {
    rendezvous_->keep(running());
    kept_ = now;
  }
  tick_timer_ = scheduler_.after(interval, [this] { tick(); });
}

void TcpNetwork::failed(Session& session, Error error) {
  Edge& edge = *find_edge(session.local(), session.remote());
  edge.caller.reset();
  if (leaving_ || error_) {
    if (!error_) setup_.message(error.message + ", when this process was done");
    return;
  }
  // Whoever sends nonsense, or takes calls and drops them, is not asked to do so without end.
  const bool slowly = session.misused() || (edge.lost && !session.greeted());
  const gossip::Time pause = slowly ? Connector::kLongestPause : 0ns;
  if (session.misused()) edge.barred_until = scheduler_.now() + pause;
  if (!joined_ && session.untouched())
    edge.called_back = "it called, but was lost again";  // nothing was said yet: as if it had not
                                                         // been there, it may come again
  else if (!lose(edge, error)) return end_run(std::move(error), nullptr);
  if (edge.calls() && !error_ && !leaving_) call(edge, pause);
}

/// An edge whose session is at its end. Whether the run goes on without it.
bool TcpNetwork::lose(Edge& edge, const Error& why) {
  if (edge.lost) return true;
  if (!has_begun()) return edge.lost = joined_ && late_;
  edge.lost = true;
  return setup_.lost(edge.local, edge.remote, why);
}

/// The link is back only now: whoever called may have given up, and its call lain in a queue until
/// we came to it.
void TcpNetwork::greeted(Session& session) {
  Edge& edge = *find_edge(session.local(), session.remote());
  if (!edge.lost) return;
  edge.lost = false;
  if (has_begun()) setup_.back(edge.local, edge.remote);
}

void TcpNetwork::left(Session& session) {
  const Edge& edge = *find_edge(session.local(), session.remote());
  if (has_begun() && !leaving_ && !error_ && !edge.lost) setup_.left(edge.local, edge.remote);
  else if (conference_ && !leaving_ && !error_) hear();
}

void TcpNetwork::aborted(Session& session, Error error) {
  if (leaving_) {
    setup_.message("another process ended the run when this one was done: " + error.message);
    return session.close();
  }
  Edge& edge = *find_edge(session.local(), session.remote());
  // A network that was never whole is none that goes on, though this process's own neighbours were
  // all there; but a latecomer that did not come to its end is no more than that.
  const bool never_whole =
      error.kind == ErrorKind::join_timeout || error.kind == ErrorKind::rejected;
  const Error ended{ErrorKind::lost_peer,
                    fmt::format("{} has ended: {}", session.name(), error.message)};
  const bool was_whole = edge.begun || (conference_ && all_gathered());
  if (error_ || (never_whole && !was_whole) || !lose(edge, ended))
    return end_run(std::move(error), &session);
  session.close();
  edge.caller.reset();
  if (edge.calls() && !error_ && !leaving_) call(edge, Connector::kLongestPause);
}

void TcpNetwork::abort(Error error) {
  if (leaving_) {
    for (auto& [pair, edge] : edges_)
      if (edge.session) edge.session->close();
    return;
  }
  end_run(std::move(error), nullptr);
}

/// The first reason counts. It goes to all partners but the one it came from; they do the same, so
/// it floods the graph.
void TcpNetwork::end_run(Error error, const Session* heard_from) {
  if (error_) return;
  error_ = std::move(error);
  for (auto& [pair, edge] : edges_) {
    edge.caller.reset();
    if (!edge.session) continue;
    // Refused at the door, we are none of their business: they go on waiting for the right one.
    if (error_->kind == ErrorKind::rejected && heard_from == nullptr) edge.session->close();
    else edge.session->abort(edge.session.get() == heard_from ? nullptr : &*error_);
  }
  if (!joining_) setup_.fault(*error_);
}

void TcpNetwork::begin_leave() {
  if (leaving_) return;
  leaving_ = true;
  for (auto& [pair, edge] : edges_) {
    if (!edge.connected()) edge.caller.reset();
    if (!edge.session || error_) continue;
    if (edge.lost) edge.session->close();
    else edge.session->say_goodbye();
  }
}

bool TcpNetwork::left() const {
  return each_session([](const Session& session) { return session.finished(); });
}

/// Whether `holds` is true of every session there is.
bool TcpNetwork::each_session(const std::function<bool(const Session&)>& holds) const {
  return std::ranges::all_of(edges_, [&](const auto& entry) {
    return !entry.second.session || holds(*entry.second.session);
  });
}

void TcpNetwork::leave(gossip::Time patience) {
  begin_leave();
  // A slow reader that lives gets all that was sent to it, however long that takes: its last round
  // may need it. One that dies is found silent.
  if (!error_)
    scheduler_.run_io_until(
        [&] { return each_session([](const Session& session) { return session.flushed(); }); });
  bool late = false;
  const auto deadline = scheduler_.after(patience, [&late] { late = true; });
  scheduler_.run_io_until([&] { return late || left(); });
  scheduler_.cancel(deadline);
  std::vector<std::string> waiting;
  for (auto& [pair, edge] : edges_) {
    if (!edge.session) continue;
    // One that said goodbye may have gone while its last word, that it has ours too, was lost.
    if (!edge.session->finished() && !edge.session->heard_goodbye())
      waiting.push_back(edge.session->name());
    edge.session->close();
  }
  if (!waiting.empty() && !error_)
    setup_.message(fmt::format("left before these said goodbye: {}", fmt::join(waiting, ", ")));
}

}  // namespace gossamer::net
