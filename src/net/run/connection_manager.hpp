// Makes the connections of a network: connects to the partners with a higher id, decides which
// incoming connections to accept, and gives a session its first and every later connection.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "net/discovery/discovery.hpp"
#include "net/run/detours.hpp"
#include "net/run/join_phase.hpp"
#include "net/run/network_state.hpp"
#include "net/run/shutdown.hpp"
#include "net/startup/acceptor.hpp"
#include "net/startup/rendezvous.hpp"

namespace gossamer::net {

/// Thread: the scheduler's.
class ConnectionManager {
 public:
  /// `owner` receives the events of every session. All references outlive the manager.
  ConnectionManager(NetworkState& state, JoinPhase& join, Shutdown& shutdown, SessionOwner& owner)
      : state_(state),
        join_(join),
        shutdown_(shutdown),
        owner_(owner),
        detours_(state, detour_hooks()) {}

  /// Listens, announces the address in the rendezvous folder or the address book, and begins to
  /// connect. Errors: the port is in use, the folder cannot be written.
  Status start();
  Address address() const { return listening_->port.address(); }
  RefusedConnections refused() const {
    return acceptor_ ? acceptor_->refused() : RefusedConnections();
  }
  /// Looks after the files in the rendezvous folder, and the pace of the discovery.
  void tick(gossip::Time now);

  /// Network::set_members.
  void set_members(MemberList members);

  /// The session of an edge has ended: begins, or awaits, a new one.
  void connect_again(Edge& edge, gossip::Time pause);
  /// Makes another connection for the session of an edge. Where the other end is the one to
  /// connect, this asks it to dial back, and finds out whether it still knows the session.
  void reconnect(Edge& edge, gossip::Time pause);

 private:
  void connect(Edge& edge, gossip::Time pause = gossip::Time(0));
  DetourHooks detour_hooks();
  Status announce();
  void begin_discovery();
  Result<Address> find_address(int peer) const;
  ConnectorOptions connector_options(const Edge& edge, gossip::Time pause) const;
  AcceptorOptions acceptor_options();
  HandshakeResult admit(const Hello& hello) const;
  HandshakeResult admit_new_session(const Edge& edge) const;
  void on_admitted(Connection connection, const Hello& hello, HandshakeResult result);
  void on_rejected(const Hello& hello, HandshakeResult result, const std::string& clause);
  void report_duplicate(Edge& edge);
  void begin_session(Edge& edge, Connection connection, const Hello& hello);
  std::string name_of(const Edge& edge, const Connection& connection) const;
  SessionOptions session_options(Edge& edge, const Hello& hello);
  void attach(Edge& edge, Connection connection, bool resumes);

  NetworkState& state_;
  JoinPhase& join_;
  Shutdown& shutdown_;
  SessionOwner& owner_;
  std::shared_ptr<const Listening> listening_;
  std::optional<Rendezvous> rendezvous_;
  std::optional<AddressBook> book_;  ///< of a network with seeds
  std::unique_ptr<Discovery> discovery_;
  gossip::Time rendezvous_checked_{0};
  std::unique_ptr<Acceptor> acceptor_;
  Detours detours_;
};

}  // namespace gossamer::net
