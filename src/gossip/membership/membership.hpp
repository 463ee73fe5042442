// Membership: which links are up and which peers are reachable, as one peer knows it, and the
// actions that follow: a mix continues without a lost neighbour, a restored link takes effect in a
// round that neither end has started, a part of the network catches up with one that is far ahead,
// a joining peer receives rows from a donor, and rows with a conserved sum are reinitialised at a
// common round.
//
// docs/MEMBERSHIP.md specifies the protocol: states, messages, invariants, diagrams.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "gossip/exchange/exchange.hpp"
#include "gossip/membership/catch_up_flooding.hpp"
#include "gossip/membership/donor_wait.hpp"
#include "gossip/membership/link_handshake.hpp"
#include "gossip/membership/link_state_flooding.hpp"
#include "gossip/membership/participant_flooding.hpp"
#include "gossip/membership/wakeup.hpp"
#include "gossip/node/node.hpp"

namespace gossamer::gossip {

/// Of a neighbour that joins, and asks for rows. It may begin with round `first` or a later one.
struct RowsRequest {
  int from = 0;
  Round first = 0;
};

/// One peer's membership protocol. Thread: the scheduler's.
class Membership {
 public:
  using Options = MembershipOptions;
  using Event = MembershipEvent;

  /// Becomes the receiver of the membership messages of the node's endpoint. The node and the
  /// exchange outlive this object.
  Membership(Exchange& exchange, Node& node, Options options);

  // ---- events from the network
  /// The link to `peer` was lost. `why` is a whole sentence. Without effect where it is down.
  void on_link_lost(int peer, const std::string& why);
  /// The link to `peer`, which was lost, carries messages again. Messages sent before the loss do
  /// not arrive any more.
  void on_link_restored(int peer);
  /// `peer` has finished its last round and closes its links in order: its link, if it is not
  /// active, stays lost.
  void on_peer_left(int peer);
  /// A membership message of a partner. An error (lost_peer) names the protocol violation.
  Status on_control_message(const ChunkHeader& header);

  // ---- calls of the engine
  /// Runs before this peer's round t: reinitialises rows with a conserved sum where that is due,
  /// and sends rows to joining neighbours. Returns whether a reinitialisation was due.
  task<bool> begin_round(Round t);
  /// This peer joins: all of its links count as lost until on_link_restored(). Comes before that.
  /// `again`: during a run, of a peer that waits (set_wait()) and has lost its donor; its links are
  /// made anew, and it begins with that round or a later one.
  void join(std::optional<Round> again = {});
  /// This peer takes no part until round `until`: it gives no rows, and links that are
  /// restored take effect later. None: it takes part, and begins the round that its endpoint is in.
  void set_wait(std::optional<Round> until);
  DonorWait& wait() { return wait_; }
  /// Of an open run: this peer takes no part from a round to come on. See
  /// ParticipantFlooding::leave().
  bool leave() {
    GOSSAMER_CHECK(participants_, "a peer leaves for good that is in no open run");
    return participants_->leave();
  }
  /// Waits for a donor and its rows, then returns the first round of this peer, which the caller
  /// starts at once. The node then has the donor's rows and step count; its optimizer state and the
  /// rows that are not transferred are reinitialised.
  task<Round> await_admission();

  /// How far the search for a donor is, of a peer that joins, or waits for its donor.
  enum class DonorSearch {
    no_neighbour,  ///< no link is up
    only_joining,  ///< links are up, but no neighbour has sent resync: all may be joining
    requested,     ///< a donor was found and asked
    not_needed,    ///< this peer has rows, or never joined
  };
  DonorSearch donor_search() const;

  // ---- queries
  const LinkStateFlooding& flooding() const { return flooding_; }

 private:
  /// Where a joining peer starts.
  struct StartPoint {
    Round round = 0;
    std::uint64_t steps = 0;  ///< local steps that the donor has done
  };

  void begin_open();
  Round first_agreeable(int peer, Round t);
  Status on_link_state(const ChunkHeader& header);
  Status on_handshake(const ChunkHeader& header);
  void on_agreed(int peer, Round first);
  void offer_link(int peer);
  Status on_offer(const ChunkHeader& header);
  Status on_same_proposal(const ChunkHeader& header);

  // Joining.
  Status on_start_point(const ChunkHeader& header);
  void request_state();
  void follow_donor();
  void complete_join(const StartPoint& start);

  Exchange& exchange_;
  Node& node_;
  Endpoint& endpoint_;
  Options options_;
  LinkHandshake handshake_;
  LinkStateFlooding flooding_;
  CatchUpFlooding catch_ups_;
  std::optional<ParticipantFlooding> participants_;  ///< of an open run
  std::vector<RowsRequest> requests_;                ///< in the order of their arrival
  DonorWait wait_;
  // Of a joining peer.
  bool joining_ = false;
  Round first_ = 0;  ///< it begins with this round or a later one
  std::optional<int> donor_;
  std::optional<StartPoint> start_;
  Wakeup change_;  ///< of the donor, the start point, or a link
};

}  // namespace gossamer::gossip
