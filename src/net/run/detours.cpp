#include "net/run/detours.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "net/run/network_book.hpp"

namespace gossamer::net {

namespace {

// Calls of all edges at a time.
constexpr std::size_t kMostCallsOfProcess = 256;
// How many passes there are for each that tries a process again which could not be called.
constexpr int kOneFailedEvery = 4;

}  // namespace

Detours::Detours(NetworkState& state, DetourHooks hooks)
    : state_(state), hooks_(std::move(hooks)), network_(relay_network(state.setup.identity)) {}

void Detours::begin(Edge& edge, gossip::Time pause) {
  DetourOptions options;
  options.request = {edge.connects() ? RelayRequest::Kind::call : RelayRequest::Kind::wait,
                     edge.local, edge.remote, network_};
  options.authenticator = state_.authenticator.get();
  options.deadline = exchange_deadline(state_.setup.options);
  options.pause = pause;
  options.candidates = [this, &edge](int pass) { return candidates(edge, pass); };
  options.is_wanted = [this, &edge] { return is_wanted(edge); };
  options.on_reached = [this](int peer, bool reached) { reached_[peer] = reached; };
  options.on_connected = [this, &edge](Connection connection) {
    if (edge.connects()) connect(edge, std::move(connection));
    else hooks_.accept(std::move(connection));
  };
  edge.detour = std::make_unique<Detour>(state_.scheduler, std::move(options));
}

/// No connection of the edge is needed any more. A session that leaves is still resumed.
bool Detours::is_over(const Edge& edge) const {
  return state_.run.error || (state_.run.leaving && !edge.connected());
}

/// A direct hello that is answered needs no detour, whatever the answer is. A relay may connect
/// this process with one that says nothing: then the next relay is tried.
bool Detours::is_wanted(const Edge& edge) const {
  std::size_t calls = 0;
  for (const auto& [pair, other] : state_.edges)
    if (other.detour) calls += other.detour->calls();
  const bool busy = edge.connects() && edge.connector &&
                    (edge.connector->is_busy() || edge.connector->is_answered());
  return calls < kMostCallsOfProcess && !busy;
}

bool Detours::hosts(int peer) const {
  return std::ranges::binary_search(state_.setup.hosted, peer);
}

/// The peers to whose processes this one has made a connection, or which it reached with its latest
/// request.
std::set<int> Detours::callable() const {
  std::set<int> peers;
  for (const auto& [peer, reached] : reached_)
    if (reached) peers.insert(peer);
  for (const auto& [pair, edge] : state_.edges)
    if (edge.attached() && edge.called()) peers.insert(edge.remote);
  return peers;
}

/// Processes that can be called come first; those that could not be are left out but for one now
/// and then, as they would delay the pass. A peer that waits does so at the process of the other
/// peer before all.
std::vector<RelayCandidate> Detours::candidates(const Edge& edge, int pass) const {
  if (is_over(edge) || !hooks_.may_run(edge.remote)) return {};
  const int peers = state_.setup.identity.peers;
  std::vector<int> ids;
  // Pairs begin with different processes, so that no relay serves them all.
  for (int k = 0; k < peers; ++k)
    if (const int id = (edge.local + edge.remote + k) % peers; id != edge.remote && !hosts(id))
      ids.push_back(id);
  const std::set<int> first = callable();
  const auto others =
      std::ranges::stable_partition(ids, [&first](int id) { return first.contains(id); });
  if (others.begin() != ids.begin()) {
    const auto failed =
        std::ranges::stable_partition(others, [this](int id) { return !reached_.contains(id); });
    const auto left = static_cast<std::ptrdiff_t>(failed.size());
    const bool one = left > 0 && pass % kOneFailedEvery == kOneFailedEvery - 1;
    if (one) std::iter_swap(failed.begin(), failed.begin() + pass / kOneFailedEvery % left);
    ids.erase(failed.begin() + (one ? 1 : 0), ids.end());
  }
  if (!edge.connects()) ids.insert(ids.begin(), edge.remote);
  std::vector<RelayCandidate> found;
  std::set<std::string> seen;
  for (const int id : ids)
    if (const auto address = hooks_.find(id);
        address.ok() && seen.insert(to_string(*address)).second)
      found.push_back({*address, id});
  return found;
}

/// A connection for an edge of which this process is the one to send the hello.
void Detours::connect(Edge& edge, Connection connection) {
  if (is_over(edge)) return;
  if (!edge.connector && edge.connected()) hooks_.reconnect(edge);
  if (edge.connector) edge.connector->take(std::move(connection));
}

void Detours::report_route(const Edge& edge) {
  const std::string& name = edge.session->options().name;
  switch (edge.route.way) {
    case Route::Way::direct:
      state_.setup.message(fmt::format("{} is connected directly", name));
      break;
    case Route::Way::reversed:
      state_.setup.message(fmt::format(
          "{} is connected in reverse: the end that was to be called has called", name));
      break;
    case Route::Way::relayed:
      state_.setup.message(
          fmt::format("{} is connected through peer {}: neither end can call the other", name,
                      edge.route.relay));
      break;
  }
  state_.setup.on_route(edge.local, edge.remote, edge.route);
}

RelayAdmission Detours::admit(const RelayRequest& request) const {
  const int peers = state_.setup.identity.peers;
  if (request.network != network_) return {HandshakeResult::wrong_run};
  if (request.from >= peers || request.to >= peers || hosts(request.from))
    return {HandshakeResult::unknown_id};
  if (hosts(request.to)) return {admit_reversed(request)};
  if (!state_.setup.options.reach.relay || state_.run.ending())
    return {HandshakeResult::relays_nothing};
  return {state_.relay.admit(request), request.kind == RelayRequest::Kind::wait};
}

HandshakeResult Detours::admit_reversed(const RelayRequest& request) const {
  const Edge* edge = state_.edges.find(request.to, request.from);
  if (edge == nullptr || !edge->connects()) return HandshakeResult::not_a_partner;
  if (request.kind == RelayRequest::Kind::call) return HandshakeResult::does_not_wait;
  const bool lacks_connection = edge->connector || (edge->connected() && !edge->attached());
  return lacks_connection && !is_over(*edge) ? HandshakeResult::accepted
                                             : HandshakeResult::retry_later;
}

void Detours::on_request(Connection connection, const RelayRequest& request) {
  if (hosts(request.to)) {
    connection.route = {Route::Way::reversed};
    return connect(state_.edges.at(request.to, request.from), std::move(connection));
  }
  if (request.kind == RelayRequest::Kind::wait)
    state_.relay.wait(request, std::move(connection.socket));
  else state_.relay.call(request, std::move(connection.socket));
}

}  // namespace gossamer::net
