// Connects peers that cannot call each other: of two connections to this process, one of a peer
// that waits for the other and one of the peer that calls it, the relay passes the bytes of each on
// to the other (in libp2p's circuit relay: reservation and connection). In a network with keys the
// two peers encrypt what they send through it, so a relay learns the sizes and times of what
// passes, and nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "net/io/socket.hpp"
#include "net/wire/hello.hpp"
#include "net/wire/relay_request.hpp"

namespace gossamer::net {

/// Thread: the scheduler's. Its destruction closes all connections.
class Relay {
 public:
  /// Peers that wait, and pairs that are connected.
  static constexpr std::size_t kMostWaiting = 512, kMostPairs = 256;
  /// Of both together, those for which one peer has waited.
  static constexpr std::size_t kMostOfPeer = 128;
  /// Of a direction of a pair.
  static constexpr std::size_t kBufferBytes = 65536;

  /// A connection over which nothing passes for `idle` or longer is closed.
  Relay(RealScheduler& scheduler, gossip::Time idle);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  /// What to answer: `accepted`; `does_not_wait` if the peer that is called does not wait here;
  /// `relays_nothing` if there are too many connections, in all or of a peer that
  /// waits.
  HandshakeResult admit(const RelayRequest& request) const;
  /// Keeps the connection of a peer that waits, in place of an earlier one for the same call, until
  /// the other peer calls. A peer that closes it does not wait any more, and one that sends
  /// anything before it is answered is cut off.
  void wait(const RelayRequest& request, std::unique_ptr<Socket> socket);
  /// Answers the peer that waits, and passes bytes on until an end closes. If the peer does not
  /// wait any more, the connection of the caller is closed.
  void call(const RelayRequest& request, std::unique_ptr<Socket> socket);

  std::size_t waiting() const { return waiting_.size(); }
  /// Pairs that are connected.
  std::size_t connected() const { return connected_.size(); }

 private:
  class Circuit;
  using Pair = std::pair<int, int>;  ///< (peer that waits, peer that is to call it)

  std::size_t waits_of(int peer) const;
  void drop(const Circuit& circuit);

  RealScheduler& scheduler_;
  gossip::Time idle_;
  std::map<Pair, std::shared_ptr<Circuit>> waiting_;
  std::set<std::shared_ptr<Circuit>> connected_;
};

}  // namespace gossamer::net
