// How the peers of an open run agree on its participants: a peer announces that one joins or
// leaves, and from which round on, so late that all connected peers learn of it before they begin
// that round; the announcement is flooded. Peers that were apart learn of each other's changes when
// their link is restored, and make them theirs. docs/MEMBERSHIP.md specifies the protocol.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>

#include "gossip/exchange/exchange.hpp"
#include "gossip/membership/link_handshake.hpp"
#include "gossip/membership/link_state_flooding.hpp"
#include "gossip/membership/participant_changes.hpp"
#include "topology/participants/changing_schedule.hpp"

namespace gossamer::gossip {

/// What one peer of an open run knows of the participants. Thread: the scheduler's.
class ParticipantFlooding {
 public:
  /// `link`: this peer's view of its link to a partner. `options` name the schedule that this
  /// object changes. All references outlive it.
  ParticipantFlooding(Exchange& exchange, Endpoint& endpoint, const MembershipOptions& options,
                      LinkStateFlooding& link_states,
                      std::function<const PartnerLink&(int partner)> link);

  // ---- changes
  /// Announces that `peer` joins, unless that is announced already.
  void admit(int peer);
  /// The round to come from which on a peer takes part that takes none now; none if it does
  /// already, or is not to join.
  std::optional<Round> first_to_come(int peer) const;
  /// Called when that has changed.
  std::function<void(int peer)> on_admitted = [](int) {};
  /// This peer takes no part from a round to come on; if it is still joining, from one after it has
  /// joined. False: it takes no part, was asked to leave already, or no other participant would
  /// stay.
  bool leave();
  /// This peer begins round t: makes links anew to neighbours that take the same change for one of
  /// another round, so that in round t they mix with other weights. If it was to leave before, and
  /// stays because all were to, it announces that it takes part.
  void begin_round(Round t);

  // ---- messages
  /// A `participant` message of a partner. An error names the protocol violation.
  Status receive(const ChunkHeader& header);
  /// Sends all that this peer knows to a partner, whose link is up: before what lets the link take
  /// effect, and once that is agreed.
  void send_all(int to);
  /// `peer` was given this peer's rows and all that it knows, or gave both: it learns of changes
  /// in time from now on.
  void on_rows_exchanged(int peer) { in_step_.insert(peer); }
  void on_link_lost(int peer);
  /// A partner whose link is active has done its last round. It sends no rows for the weights that
  /// a change gives it which it did not know.
  void on_partner_left(int partner);
  /// Called in the first round in which that matters: the link counts as lost.
  std::function<void(int partner)> on_unaware = [](int) {};
  /// Called in the first round in which a partner takes no part that has done its last round.
  std::function<void(int partner)> on_gone = [](int) {};

  // ---- of a peer that joins
  /// What this peer knows from now on is what `donor` sends it; none: nothing, until it has one.
  void follow(std::optional<int> donor);
  /// It has joined: makes changes its own that other partners have sent meanwhile.
  void end_following();
  /// It has begun: leave() as it was asked to meanwhile.
  void leave_if_asked();

  /// The first round from t on in which the link to `partner` may take effect: the news of changes
  /// to come reaches the peers beyond the link in time, or is known there, or the changes have
  /// taken effect.
  Round first_agreeable(int partner, Round t) const;

 private:
  Round now() const { return endpoint_.round(); }
  Round known_to_all_from() const;
  Round next_free() const;
  bool is_in_step(int peer, Round first) const;
  const ParticipantChanges* received_from(int partner) const;
  Status receive_news(const ChunkHeader& header);
  void announce(int peer, ParticipantVersion version, Round first);
  void adopt(int peer, ParticipantVersion version, Round first);
  void pass_on(int to, int peer, ParticipantVersion version, Round first);
  void send(int to, int peer, ParticipantVersion version, Round first);
  void reset(int peer, Round first);

  Exchange& exchange_;
  Endpoint& endpoint_;
  const MembershipOptions& options_;
  LinkStateFlooding& link_states_;
  std::function<const PartnerLink&(int partner)> link_;
  /// G: an announcement has reached all connected peers G rounds later, while the participants stay
  /// the same: (n − 1) h + 1, where two neighbours are at most h rounds apart. Changes take effect
  /// in multiples of it only.
  Round notice_;
  ParticipantChanges changes_;
  std::set<int> in_step_;  ///< partners of on_rows_exchanged()
  /// By partner: the changes that it has sent since the link is up.
  std::map<int, ParticipantChanges> received_;
  /// By partner that has done its last round: the first round of the changes that it did not know.
  std::map<int, std::optional<Round>> left_;
  bool follows_ = false, leaves_once_joined_ = false;
  std::optional<int> donor_;
};

}  // namespace gossamer::gossip
