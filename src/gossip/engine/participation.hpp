// One peer's part in the changes of participants: it gives its rows to those that join, and takes
// those of its donor where it joins itself.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "gossip/algorithm.hpp"
#include "gossip/engine/donors.hpp"
#include "gossip/membership/membership.hpp"
#include "gossip/node/node.hpp"
#include "gossip/task.hpp"

namespace gossamer::gossip {

/// Thread: the scheduler's. `membership`: the peer's, or null in a run that tolerates no loss.
class Participation {
 public:
  /// All references outlive it.
  Participation(Exchange& exchange, const Algorithm& algorithm, Node& node, const Donors& donors);

  const topology::Participants& participants() const { return exchange_.schedule().participants(); }
  bool takes_part(Round t) const { return participants().takes_part(node_.id(), t); }
  /// Whether the peer cannot begin round t with its rows, which are those after `rows_after`
  /// rounds: it takes no part, or took none in a round between.
  bool needs_rows(Round rows_after, Round t) const {
    return !takes_part(t) ||
           participants().missed(node_.id(), t) > participants().missed(node_.id(), rows_after);
  }
  bool counts_after(Round rounds) const { return participants().counts_after(node_.id(), rounds); }
  /// The first round from t on in which the peer takes part, `end` at the latest.
  Round next_round(Round t, Round end) const;
  /// Local steps that the node counts, but has not done, because it took no part in their rounds:
  /// of those before the last round that it has begun.
  std::uint64_t steps_left_out() const {
    return participants().missed(node_.id(), entered_) * steps_of_round();
  }

  /// Rounds that the peer left out to keep up with others, in the whole run.
  Round rounds_left_out() const { return left_out_before_ + node_.endpoint().rounds_left_out(); }
  /// Of a peer that goes on from a saved state: those before it.
  void set_left_out_before(Round rounds) { left_out_before_ = rounds; }

  /// The peer is in round t, or after it: it does not take rows that are given with changes before
  /// or in that round. (Those of later changes may arrive before it waits for them.)
  void pass(Round t) { starting_rows().drop_before(t + 1); }
  /// What became of a wait for rows.
  enum class Wait {
    taken,       ///< the node has the donor's rows; what is not transferred was reinitialised
    donor_lost,  ///< others have begun the round, or the run ends, and the donor is not there
    stopped
  };
  /// Waits for the rows with which the peer begins round t: those that it is given with the change
  /// in which it joins. `stops`: asked when it wakes; see interrupt().
  task<Wait> await_rows(Round t, Membership* membership, std::function<bool()> stops);
  /// The run ends with the rounds that have begun: a wait asks again whether it is to stop, and
  /// waits for no donor that is not there.
  void interrupt() {
    interrupted_ = true;
    if (waits_) node_.endpoint().messenger().notify();
  }
  /// The peer ends without rows: others wait for it no longer.
  void give_up();

  /// The peer begins with round t: the rounds before are over, or it did not take part in them.
  void resume_at(Round t) { entered_ = t; }
  /// The peer begins round t, with that round's step of the schedule of step sizes. If other peers
  /// take part than in its round before, returns that one.
  std::optional<Round> enter(Round t);
  /// What enter() has found: the peer gives rows to those that join, and reinitialises rows with a
  /// conserved sum. Returns whether it has such rows.
  task<bool> begin_change(Round last, Round t, Membership* membership);
  /// The peer does no further round before round `end`: it gives rows to the peers that join with
  /// changes since its last one.
  void give_rows_before(Round end);

 private:
  void give_rows(Round first, Round last);
  StartingRows& starting_rows() { return node_.endpoint().starting_rows(); }
  std::uint64_t steps_of_round() const;
  task<bool> take_rows(const Donors::Joining& joining);

  Exchange& exchange_;
  const Algorithm& algorithm_;
  Node& node_;
  const Donors& donors_;
  Round entered_ = 0;  ///< the last round that has begun, and one; 0: none has
  Round left_out_before_ = 0;
  bool waits_ = false, interrupted_ = false;
};

}  // namespace gossamer::gossip
