// What the parts of a network share: its setup, its edges, and how far the run has come.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "net/network.hpp"
#include "net/relay/relay.hpp"
#include "net/run/edge.hpp"

namespace gossamer::net {

/// How far the run has come.
struct RunProgress {
  bool joined = false;         ///< all pairs are connected, or all that a latecomer waits for
  bool blocking = false;       ///< within join() or all_gather(), which return an error themselves
  bool late = false;           ///< the network had begun its rounds before this process joined
  bool leaving = false;        ///< begin_leave() was called
  std::optional<Error> error;  ///< what ended the run

  bool ending() const { return leaving || error.has_value(); }
};

/// Owned by the network; its parts hold references.
struct NetworkState {
  NetworkState(RealScheduler& scheduler_in, NetworkSetup setup_in, gossip::Receiver& receiver_in)
      : scheduler(scheduler_in),
        setup(std::move(setup_in)),
        receiver(receiver_in),
        failure_timeout(gossip::from_seconds(setup.options.failure_timeout)),
        relay(scheduler, std::max(kShortestRelayIdle, kRelayIdleTimeouts * failure_timeout)),
        edges(setup.pairs, setup.later.elsewhere) {
    if (setup.credentials)
      authenticator = std::make_unique<Authenticator>(scheduler, *std::move(setup.credentials));
    for (const int peer : setup.hosted) traffic[peer];
  }

  /// The address of a peer in the list of members or in net.peers; empty if there is none.
  std::string configured_address(int peer) const {
    const Member* member = authenticator ? authenticator->members().find(peer) : nullptr;
    if (member != nullptr && !member->address.empty()) return member->address;
    const auto& peers = setup.options.peers;
    return peers.empty() ? "" : peers[static_cast<std::size_t>(peer)];
  }

  /// For how many failure timeouts of its own, and for how long at least, a relay keeps a
  /// connection over which nothing passes.
  static constexpr int kRelayIdleTimeouts = 4;
  static constexpr gossip::Time kShortestRelayIdle = std::chrono::seconds(60);

  RealScheduler& scheduler;
  NetworkSetup setup;
  gossip::Receiver& receiver;
  gossip::Time failure_timeout;
  HashMemo hashes;
  std::map<int, SocketTraffic> traffic;          ///< by hosted peer
  std::unique_ptr<Authenticator> authenticator;  ///< null: connections are not encrypted
  Relay relay;
  EdgeTable edges;
  RunProgress run;
  /// That a process of another run has taken the place of a peer; empty if none has. Null where
  /// this is not known. It reads a file.
  std::function<std::string(int peer)> other_run = {};
};

}  // namespace gossamer::net
