// The handshake that lets restored links of a peer take effect: both ends agree on a round that
// neither has started. docs/MEMBERSHIP.md specifies the protocol.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "gossip/exchange/exchange.hpp"

namespace gossamer::gossip {

/// A peer's view of its own link to one partner.
struct PartnerLink {
  bool up = true;                    ///< the link carries messages
  bool active = true;                ///< it takes part in mixing, or will from an agreed round on
  std::optional<Round> proposed;     ///< by this peer, and not yet answered
  std::optional<Round> peers_round;  ///< the round of the other end when the link was restored, or
                                     ///< a later one; none: it may be joining
  std::optional<Round> offered;      ///< by the other end, before this peer has joined
  Round margin = 1;  ///< rounds between the round of the end that is ahead and the next proposal

  static PartnerLink down() {
    PartnerLink link;
    link.up = link.active = false;
    return link;
  }
};

/// The links of one peer. Thread: the scheduler's.
class LinkHandshake {
 public:
  /// What the handshake asks of its owner.
  struct Owner {
    /// The first round from t on in which the link to `peer` may take effect.
    std::function<Round(int peer, Round t)> first_agreeable;
    /// Both ends have agreed that the link takes effect from round `first` on.
    std::function<void(int peer, Round first)> on_agreed;
    /// Sends what the other end has to know before it proposes or accepts a round.
    std::function<void(int to)> before_resync;
    /// A link was agreed on, or proposed.
    std::function<void()> on_change;
  };
  /// The endpoint outlives it. `may_cross`: both ends may propose, of an open run.
  LinkHandshake(Endpoint& endpoint, const std::vector<int>& partners, bool may_cross, Owner owner);

  std::map<int, PartnerLink>& links() { return links_; }
  const std::map<int, PartnerLink>& links() const { return links_; }
  PartnerLink& link(int peer) { return links_.at(peer); }
  /// No neighbour waits for this peer in any round.
  bool is_isolated() const;
  /// Whether a neighbour that runs is still to propose the round in which its link takes effect.
  /// (In a round that this peer has proposed itself, it waits for the neighbour.)
  bool awaits_proposal() const;

  void send(int to, ControlMessage message, Round t, std::uint64_t donor_steps = 0);
  /// This peer, which is in round t, begins the handshake.
  void send_resync(int to, Round t);
  /// Begins it on links that were restored while this peer had no round; it has `first` now.
  void synchronise(Round first);
  /// The other end of a restored link was in round `peers_round`. The lower id proposes; after a
  /// rejection, the end that proposed before.
  void on_resync(int peer, Round peers_round, bool rejected = false);
  /// Proposes that the link takes effect from round t on, which this peer has not started.
  void propose(int peer, Round t, std::uint64_t steps,
               ControlMessage message = ControlMessage::propose_round);
  void withdraw(int peer);
  /// The other end proposes round `first`.
  void on_proposal(int peer, Round first);
  /// A proposal arrives while this peer may have one of its own under way: that of the lower id
  /// stands. Returns whether the other end's does; this peer's is withdrawn then.
  bool yields_to(int peer);
  /// A reject_round message. An error names the protocol violation.
  Status on_rejection(const ChunkHeader& header);
  /// Both ends agree on `first`.
  void agree(int peer, Round first);

  // ---- of an open run: offers to a peer that joins
  /// A neighbour offers its link to this joining peer, from round `first` on. Its first row may
  /// arrive before the rows of the donor.
  void take_offer(int peer, Round first);
  /// This peer has joined: it accepts offers, or rejects them.
  void answer_offers();
  /// Drops all offers; returns the peers that made them, ascending.
  std::vector<int> drop_offers();

 private:
  Endpoint& endpoint_;
  bool may_cross_;
  Owner owner_;
  std::map<int, PartnerLink> links_;
};

}  // namespace gossamer::gossip
