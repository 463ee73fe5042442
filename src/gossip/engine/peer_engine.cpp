#include "gossip/engine/peer_engine.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace gossamer::gossip {

PeerEngine::PeerEngine(Exchange& exchange, const Algorithm& algorithm, int id, NodeMemory memory,
                       const EngineOptions& options, const Donors& donors, EngineHooks& hooks)
    : algorithm_(algorithm),
      exchange_(exchange),
      memory_(std::move(memory)),
      options_(options),
      hooks_(hooks),
      node_(exchange, id, options.peers, algorithm.rows(exchange.schedule()), memory_),
      participation_(exchange, algorithm, node_, donors),
      last_(options.rounds) {}

void PeerEngine::tolerate_loss(Membership::Options plan) {
  membership_.emplace(exchange_, node_, std::move(plan));
}

Membership& PeerEngine::membership() {
  GOSSAMER_CHECK(membership_, "a loss that is not tolerated");
  return *membership_;
}

void PeerEngine::begin_at(Round round) {
  round_ = begun_ = round;
  participation_.resume_at(round);
  node_.endpoint().begin_at(round);
}

void PeerEngine::restore(const PeerState& state) {
  GOSSAMER_CHECK(state.counters.size() == node_.counters().size(), "counters of another algorithm");
  std::ranges::copy(state.counters, node_.counters().begin());
  algorithm_.resume(id(), state.round, node_.counters(), exchange_.schedule());
  node_.set_steps_done(state.steps);
  participation_.set_left_out_before(state.rounds_left_out);
  round_ = begun_ = state.round;
  participation_.resume_at(state.round);
  reinitialises_ = node_.endpoint().mixer().uses_earlier_rows() ||
                   (node_.conserves_sums() && !state.sums_are_whole);
}

void PeerEngine::join() {
  joins_ = true;
  membership().join();
}

void PeerEngine::start() {
  driver_ = run();
  driver_.start(exchange_.scheduler());
}

void PeerEngine::stop_after(Round round) {
  stop_after_ = round;
  last_ = std::min(options_.rounds, round);
  participation_.interrupt();
  if (rejoins_) give_up();
}

/// The run ends, and the peer has no rows: it ends without them.
void PeerEngine::give_up() {
  participation_.give_up();
  finished_ = true;
  hooks_.on_part(*this, EngineHooks::Part::gives_up);
  hooks_.finished(*this);
}

task<void> PeerEngine::run() {
  if (joins_) {
    const bool goes_on = co_await join_network();
    if (!goes_on) co_return;
  } else {
    if (reinitialises_) co_await node_.reinitialise_rows();
    co_await record();
  }
  // Where it does not count, round_ is 0 and the peer takes no part in it, or 1 at least.
  rows_after_ = joins_ || participation_.counts_after(round_) ? round_ : round_ - 1;
  while (round_ < last_) {
    if (participation_.needs_rows(rows_after_, round_)) {
      const bool goes_on = co_await wait_to_take_part();
      if (!goes_on) co_return;
      rows_after_ = round_;
      continue;
    }
    begun_ = rows_after_ = round_ + 1;
    bool reinitialised = false;
    if (membership_) reinitialised = co_await membership_->begin_round(round_);
    if (const auto last = participation_.enter(round_)) {
      const bool sums = co_await participation_.begin_change(*last, round_,
                                                             membership_ ? &*membership_ : nullptr);
      reinitialised = reinitialised || sums;
    }
    hooks_.before_round(*this, reinitialised);
    co_await algorithm_.round(node_, round_);
    if (!hooks_.after_round(*this)) co_return;
    // The state of a peer that leaves rounds out is the same after each of them.
    begun_ = node_.endpoint().next_round(round_, last_);
    for (const Round next = begun_; round_ < next;) {
      ++round_;
      if (!participation_.counts_after(round_)) continue;
      // The state is saved first: a run that is resumed from it repeats what completed() records.
      if (saves_here()) {
        task<void> saved = hooks_.save(*this);
        if (!saved.done()) co_await saved;
      }
      task<void> recorded = hooks_.completed(*this);
      if (!recorded.done()) co_await recorded;
    }
  }
  // Under a policy that leaves rounds out, changes may lie between the last round and the end.
  participation_.give_rows_before(last_);
  co_await node_.endpoint().flush_sends();
  co_await algorithm_.drain(node_);
  finished_ = true;
  hooks_.finished(*this);
}

/// Waits until a neighbour gives rows. Returns whether the peer does rounds then.
task<bool> PeerEngine::join_network() {
  const Round first = co_await membership_->await_admission();
  rejoins_ = false;
  round_ = begun_ = first;
  participation_.resume_at(first);
  participation_.pass(first);
  if (finished_ || !hooks_.joined(*this)) co_return false;
  if (participation_.takes_part(first)) co_await record();
  co_return true;
}

/// Leaves out the rounds up to the next one in which the peer takes part, for which it takes the
/// rows of its donor; or up to the end. Returns whether the peer goes on. If the donor is lost, the
/// peer takes the rows of any neighbour, as one that joins a running network, and begins later.
task<bool> PeerEngine::wait_to_take_part() {
  round_ = participation_.next_round(round_, options_.rounds);
  if (round_ >= last_) {
    if (membership_) membership_->set_wait(round_);  // it gives no rows to those that ask
    co_return true;
  }
  hooks_.on_part(*this, EngineHooks::Part::waits);
  const std::function<bool()> stops = [this] { return round_ >= last_; };
  const Participation::Wait wait =
      co_await participation_.await_rows(round_, membership_ ? &*membership_ : nullptr, stops);
  if (wait == Participation::Wait::taken) hooks_.on_part(*this, EngineHooks::Part::begins);
  if (wait != Participation::Wait::donor_lost) co_return true;
  if (stop_after_) {
    give_up();
    co_return false;
  }
  rejoins_ = true;
  membership_->join(/*again=*/round_);
  hooks_.on_part(*this, EngineHooks::Part::lost_donor);
  const bool goes_on = co_await join_network();
  co_return goes_on && !finished_;
}

/// The peer is after round_ rounds, with which it begins.
task<void> PeerEngine::record() {
  if (!participation_.counts_after(round_)) co_return;
  task<void> recorded = hooks_.completed(*this);
  if (!recorded.done()) co_await recorded;
}

/// A peer that takes no part in the next round saves its state: the run may be interrupted after
/// this round when the peer has left. A state in which a part of a conserved sum is missing is not
/// saved: a run that is resumed does not know that the rows were to be reinitialised.
bool PeerEngine::saves_here() const {
  if (options_.save_every == 0) return false;
  const bool whole =
      !membership_ || !node_.conserves_sums() || membership_->flooding().sums_are_whole(round_);
  const bool due =
      round_ % options_.save_every == 0 || stops_here() || !participation_.takes_part(round_);
  return due && whole;
}

PeerState PeerEngine::state() {
  return {.round = round_,
          .steps = node_.steps_done(),
          .counters = {node_.counters().begin(), node_.counters().end()},
          .rounds_left_out = participation_.rounds_left_out()};
}

std::vector<std::span<float>> PeerEngine::state_rows() {
  std::vector<std::span<float>> rows;
  for (std::size_t k = 0; k < memory_.front.size(); ++k)
    rows.push_back(node_.row(static_cast<int>(k)));
  rows.insert(rows.end(), memory_.state.begin(), memory_.state.end());
  return rows;
}

}  // namespace gossamer::gossip
