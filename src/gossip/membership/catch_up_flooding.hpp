// How a part of the network catches up with another part that is many rounds ahead: the peer whose
// restored link takes effect in a far round announces which rounds its part leaves out, and the
// announcement is flooded. docs/MEMBERSHIP.md specifies the protocol.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "gossip/exchange/exchange.hpp"
#include "gossip/membership/link_state_flooding.hpp"

namespace gossamer::gossip {

/// Catch-ups of one peer. Thread: the scheduler's.
class CatchUpFlooding {
 public:
  /// `is_active`: as of LinkStateFlooding, which counts what partners announce. All references
  /// outlive this object.
  CatchUpFlooding(Exchange& exchange, Endpoint& endpoint, const MembershipOptions& options,
                  LinkStateFlooding& link_states, std::function<bool(int partner)> is_active);

  /// A catch_up message of a partner whose link is active. An error names the protocol violation.
  Status receive(const ChunkHeader& header);
  /// The link to `peer` was agreed to take effect in round `first`: announces a catch-up if that is
  /// far ahead, and sends the ones that are known and include the link.
  void on_link_active(int peer, Round first);
  /// This peer begins round t; comes before LinkStateFlooding::begin_round(). After a catch-up,
  /// announces another one if a link takes effect far ahead.
  void begin_round(Round t);
  /// The first round from t on in which a link of this peer may take effect. An isolated peer
  /// exchanges rows with no other one, and follows no catch-up.
  Round first_agreeable(Round t, bool isolated);
  /// Whether rounds to come are to be left out.
  bool any_to_come() const { return !endpoint_.catch_ups().to_come(endpoint_.round()).empty(); }

  /// The rounds after an announcement within which it has reached all peers of the part: (n − 1) h
  /// + 1, where two neighbours are at most h rounds apart. None: peers do not catch up, because the
  /// policy or the graph does not keep neighbours in step, or because a rule other than the mean
  /// guards the peers from what single neighbours say.
  std::optional<Round> notice() const { return notice_; }

 private:
  bool includes(int peer, const CatchUp& catch_up) const;
  Round latest_of_neighbour(int peer) const;
  void consider(Round first);
  void spread(const CatchUp& catch_up, int from);
  void pass_on(int to, const CatchUp& catch_up);
  std::span<const int> partners() const;

  Exchange& exchange_;
  Endpoint& endpoint_;
  const MembershipOptions& options_;
  LinkStateFlooding& link_states_;
  std::function<bool(int partner)> is_active_;
  std::optional<Round> notice_;
};

}  // namespace gossamer::gossip
