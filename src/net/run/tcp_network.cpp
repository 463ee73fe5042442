#include "net/run/tcp_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.hpp"

namespace gossamer::net {

using namespace std::chrono_literals;

namespace {

/// Short enough for heartbeats and for the resolution of the failure detector.
gossip::Time tick_interval(gossip::Time failure_timeout) {
  return std::clamp<gossip::Time>(failure_timeout / 16, 5ms, 250ms);
}

}  // namespace

std::string peer_name(int peer) { return fmt::format("peer {}", peer); }

Result<std::unique_ptr<Network>> Network::make(RealScheduler& scheduler, NetworkSetup setup,
                                               gossip::Receiver& receiver) {
  GOSSAMER_CHECK(!setup.hosted.empty() && std::ranges::is_sorted(setup.hosted),
                 "hosted peers, ascending");
  std::set<std::pair<int, int>> seen;
  for (const auto& [local, remote] : setup.pairs) {
    GOSSAMER_CHECK(std::ranges::binary_search(setup.hosted, local),
                   "a pair begins at a hosted peer");
    GOSSAMER_CHECK(!std::ranges::binary_search(setup.hosted, remote),
                   "a pair ends at a peer of another process");
    GOSSAMER_CHECK(remote >= 0 && remote < setup.identity.peers,
                   "a pair ends at a peer of the network");
    GOSSAMER_CHECK(seen.insert({local, remote}).second, "a pair given twice");
  }
  GOSSAMER_TRY_STATUS(validate(setup.options, setup.identity.peers, setup.hosted));
  return std::unique_ptr<Network>(
      std::make_unique<TcpNetwork>(scheduler, std::move(setup), receiver));
}

TcpNetwork::TcpNetwork(RealScheduler& scheduler, NetworkSetup setup, gossip::Receiver& receiver)
    : state_(scheduler, std::move(setup), receiver),
      shutdown_(state_),
      all_gather_(state_, shutdown_),
      join_(state_, all_gather_, shutdown_),
      connections_(state_, join_, shutdown_, supervisor_),
      supervisor_(state_, join_, all_gather_, connections_, shutdown_),
      clock_(tick_interval(state_.failure_timeout)) {}

TcpNetwork::~TcpNetwork() { state_.scheduler.cancel(tick_timer_); }

Status TcpNetwork::start() {
  started_ = true;
  GOSSAMER_TRY_STATUS(connections_.start());
  tick();
  join_.check();
  return {};
}

Status TcpNetwork::join() {
  if (!started_) GOSSAMER_TRY_STATUS(start());
  return join_.wait();
}

bool TcpNetwork::connected(int here, int there) const {
  return state_.edges.at(here, there).carries();
}

Status TcpNetwork::all_gather(AllGather gather) {
  state_.run.blocking = true;
  begin_all_gather(std::move(gather));
  state_.scheduler.run_until([&] { return all_gathered() || state_.run.error; });
  state_.run.blocking = false;
  if (state_.run.error) return *state_.run.error;
  if (all_gathered()) return {};
  return Error{ErrorKind::interrupted, "interrupted while waiting for other peers"};
}

void TcpNetwork::begin_all_gather(AllGather gather) {
  join_.hold_chunks();
  all_gather_.begin(std::move(gather));
}

void TcpNetwork::send_figures(int here, int there,
                              const std::function<std::optional<Figures>()>& figures) {
  Edge& edge = state_.edges.at(here, there);
  if (!edge.carries() || edge.session->queue().acked() < edge.figures_sent) return;
  auto news = figures();
  if (!news) return;
  edge.session->send(news->frame, std::move(news->entries));
  edge.figures_sent = edge.session->queue().pushed();
}

void TcpNetwork::end_link(int here, int there, Blame blame, const Error& why) {
  supervisor_.end_link(state_.edges.at(here, there), blame, why.message);
}

std::vector<LinkReport> TcpNetwork::links() const {
  std::vector<LinkReport> links;
  for (const auto& [pair, edge] : state_.edges)
    if (edge.session)
      links.push_back({pair.first, pair.second, edge.carries(),
                       edge.session->options().lending->lends(), edge.session->remote().suspected,
                       edge.route});
  return links;
}

void TcpNetwork::tick() {
  const gossip::Time now = state_.scheduler.now();
  const gossip::Time counted = clock_.advance(now);
  for (auto& [pair, edge] : state_.edges)
    if (edge.session) edge.session->tick(now, counted);
  connections_.tick(now);
  if (join_.has_begun() && !state_.run.ending()) state_.setup.on_tick(counted);
  tick_timer_ = state_.scheduler.after(clock_.interval(), [this] { tick(); });
}

}  // namespace gossamer::net
