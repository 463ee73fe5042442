// Connects the edges of a network for which no process can be called directly: starts a detour
// where an edge has no connection for a while, serves the requests of other processes, and relays
// between those that cannot call each other.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "net/relay/detour.hpp"
#include "net/run/network_state.hpp"
#include "net/startup/acceptor.hpp"

namespace gossamer::net {

/// What the detours need of the connections.
struct DetourHooks {
  /// Where a peer listens; an error if that is not known.
  std::function<Result<Address>(int peer)> find;
  /// The process of the peer has been started, as far as this one knows.
  std::function<bool(int peer)> may_run;
  /// Begins an attempt to resume the session of an edge.
  std::function<void(Edge&)> reconnect;
  /// Awaits a hello on a connection.
  std::function<void(Connection)> accept;
};

/// Thread: the scheduler's.
class Detours {
 public:
  /// The state outlives the detours.
  Detours(NetworkState& state, DetourHooks hooks);

  /// Looks for a detour after `pause`, until the edge is connected (Edge::detour).
  void begin(Edge& edge, gossip::Time pause);
  /// The connection of an edge goes another way than the one before.
  void report_route(const Edge& edge);
  /// AcceptorOptions::admit_relay and on_relay.
  RelayAdmission admit(const RelayRequest& request) const;
  void on_request(Connection connection, const RelayRequest& request);

 private:
  bool hosts(int peer) const;
  bool is_over(const Edge& edge) const;
  bool is_wanted(const Edge& edge) const;
  HandshakeResult admit_reversed(const RelayRequest& request) const;
  std::vector<RelayCandidate> candidates(const Edge& edge, int pass) const;
  std::set<int> callable() const;
  void connect(Edge& edge, Connection connection);

  NetworkState& state_;
  DetourHooks hooks_;
  std::string network_;
  std::map<int, bool> reached_;  ///< by peer: whether the latest request reached its process
};

}  // namespace gossamer::net
