#include "gossip/engine/peer_engine.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace gossamer::gossip {

PeerEngine::PeerEngine(Exchange& exchange, const Algorithm& algorithm, int id, NodeMemory memory,
                       const EngineOptions& options, const Donors& donors, EngineHooks& hooks)
    : algorithm_(algorithm),
      exchange_(exchange),
      donors_(donors),
      memory_(std::move(memory)),
      options_(options),
      hooks_(hooks),
      node_(exchange, id, options.peers, algorithm.rows(exchange.schedule()), memory_) {
  expect_donor(0);
}

void PeerEngine::tolerate_loss(Membership::Options plan) {
  membership_.emplace(exchange_, node_, std::move(plan));
}

Membership& PeerEngine::membership() {
  GOSSAMER_CHECK(membership_, "a loss that is not tolerated");
  return *membership_;
}

Membership::DonorSearch PeerEngine::donor_search() {
  using enum Membership::DonorSearch;
  if (!waits_) return membership().donor_search();
  return membership().has_link() ? requested : no_neighbour;
}

void PeerEngine::begin_at(Round round) {
  round_ = begun_ = round;
  node_.endpoint().begin_at(round);
  expect_donor(round);
}

void PeerEngine::restore(const PeerState& state) {
  GOSSAMER_CHECK(state.counters.size() == node_.counters().size(), "counters of another algorithm");
  std::ranges::copy(state.counters, node_.counters().begin());
  algorithm_.resume(id(), state.round, node_.counters(), exchange_.schedule());
  node_.set_steps_done(state.steps);
  round_ = begun_ = state.round;
  reinitialises_ = node_.endpoint().mixer().uses_earlier_rows();
}

void PeerEngine::join() {
  joins_ = true;
  membership().join();
}

void PeerEngine::start() {
  driver_ = run();
  driver_.start(exchange_.scheduler());
}

Round PeerEngine::last() const {
  return std::min(options_.rounds, stop_after_.value_or(options_.rounds));
}

/// A state in which a part of a conserved sum is missing is not saved: a run that is resumed does
/// not know that the rows were to be reinitialised.
bool PeerEngine::saves_here() const {
  const bool whole =
      !membership_ || !node_.conserves_sums() || membership_->flooding().sums_are_whole(round_);
  return options_.save_every > 0 && (round_ % options_.save_every == 0 || stops_here()) && whole;
}

void PeerEngine::stop_after(Round round) {
  stop_after_ = round;
  if (waits_) node_.endpoint().messenger().notify();
}

task<void> PeerEngine::run() {
  if (joins_) {
    const bool goes_on = co_await join_network();
    if (!goes_on) co_return;
  } else if (reinitialises_) {
    co_await node_.reinitialise_rows();
  }
  if (!joins_) co_await record();
  bool has_rows = joins_ || participants().counts_after(id(), round_);
  while (round_ < last()) {
    if (!has_rows || !participants().takes_part(id(), round_)) {
      has_rows = co_await wait_to_take_part();
      if (!has_rows) co_return;
      continue;
    }
    co_await begin_round();
    co_await algorithm_.round(node_, round_);
    if (!hooks_.after_round(*this)) co_return;
    co_await complete_rounds(node_.endpoint().next_round(round_, last()));
  }
  // Under a policy that leaves rounds out, changes may lie between the last round and the end.
  if (begun_ > 0 && begun_ < last()) give_rows(begun_, last() - 1);
  co_await node_.endpoint().flush_sends();
  co_await algorithm_.drain(node_);
  finished_ = true;
  hooks_.finished(*this);
}

/// Waits until a neighbour gives rows. Returns whether the peer does rounds then.
task<bool> PeerEngine::join_network() {
  const Round first = co_await membership_->await_admission();
  round_ = begun_ = first;
  expect_donor(first + 1);
  if (!hooks_.joined(*this)) co_return false;
  co_await record();
  co_return true;
}

/// round_ rounds are completed.
task<void> PeerEngine::record() {
  if (!participants().counts_after(id(), round_)) co_return;
  task<void> recorded = hooks_.completed(*this);
  if (!recorded.done()) co_await recorded;
}

/// Leaves out the rounds up to the next one in which the peer takes part, for which it takes the
/// rows of its donor; or up to the end. Returns whether the peer goes on.
task<bool> PeerEngine::wait_to_take_part() {
  const std::optional<Round> next = participants().next_round(id(), round_);
  round_ = std::min(next.value_or(options_.rounds), options_.rounds);
  if (round_ >= last()) co_return true;
  Endpoint& endpoint = node_.endpoint();
  const int donor = donors_.next(id(), round_)->donor;
  expect_donor(round_);
  waits_ = true;
  if (membership_) membership_->begin_wait(round_);
  hooks_.waits_for_donor(*this);
  while (round_ < last() && !endpoint.has_state_from(donor) && !has_missed_donor(donor))
    co_await endpoint.messenger().wait_event();
  waits_ = false;
  if (round_ >= last()) co_return true;
  const bool taken = co_await take_rows(donor);
  if (!taken) {
    const bool joined = co_await ask_others();
    co_return joined;
  }
  endpoint.begin_at(round_);
  if (membership_) membership_->end_wait(round_);
  expect_donor(round_ + 1);
  hooks_.takes_part(*this);
  co_return true;
}

/// The rows of the donor with which the peer joins in round t or later may arrive from now on,
/// before the peer waits for them.
void PeerEngine::expect_donor(Round t) {
  const auto joining = donors_.next(id(), t);
  node_.endpoint().expect_state_from(joining ? std::optional(joining->donor) : std::nullopt,
                                     /*soon=*/false);
}

/// Returns false if the donor is lost before all rows have arrived.
task<bool> PeerEngine::take_rows(int donor) {
  Endpoint& endpoint = node_.endpoint();
  bool whole = endpoint.has_state_from(donor);
  if (whole) {
    endpoint.expect_state_from(donor, /*soon=*/true);
    whole = co_await node_.receive_state(donor);
  }
  endpoint.expect_state_from(std::nullopt);
  if (!whole) co_return false;
  node_.set_steps_done(round_ * steps_of_round());
  co_await node_.reinitialise_rows();
  co_await node_.reset_optimizer();
  co_return true;
}

/// Whether a neighbour has begun the round in which this peer is to take part, and the donor is not
/// there to give rows for it.
bool PeerEngine::has_missed_donor(int donor) {
  return membership_ && !node_.endpoint().view().is_present(donor, round_) &&
         membership_->others_have_begun();
}

/// The donor is lost: as a peer that joins a running network, this one takes the rows of any
/// neighbour, and a later round than it was to begin in.
task<bool> PeerEngine::ask_others() {
  membership_->join_again();
  hooks_.lost_donor(*this);
  const bool goes_on = co_await join_network();
  co_return goes_on;
}

/// Gives rows to the peers that take part from this round on, where this peer is their donor, and
/// reinitialises rows with a conserved sum where that is due.
task<void> PeerEngine::begin_round() {
  const Round last_begun = begun_ > 0 ? begun_ - 1 : 0;
  begun_ = round_ + 1;
  bool reinitialised = false;
  if (membership_) reinitialised = co_await membership_->begin_round(round_);
  give_rows(last_begun + 1, round_);
  const bool changes = participants().index_at(last_begun) != participants().index_at(round_);
  if (changes && membership_)
    membership_->announce_change(donors_.joining(last_begun + 1, round_), round_);
  if (changes && node_.conserves_sums()) {
    co_await node_.reinitialise_sums();
    reinitialised = true;
  }
  hooks_.before_round(*this, reinitialised);
}

/// Gives rows to the peers that join with the changes in rounds first … last.
void PeerEngine::give_rows(Round first, Round last) {
  for (const int receiver : donors_.receivers(id(), first, last))
    if (node_.endpoint().view().is_present(receiver, last)) node_.send_state(receiver);
}

std::uint64_t PeerEngine::steps_of_round() const {
  const int epochs = algorithm_.epochs_per_round();
  return epochs > 0 ? static_cast<std::uint64_t>(epochs) * node_.batches_per_epoch(id())
                    : static_cast<std::uint64_t>(algorithm_.steps_per_round());
}

/// The peer is after round `next` − 1. Where it left rounds out, its state is the same after each
/// of them.
task<void> PeerEngine::complete_rounds(Round next) {
  while (round_ < next) {
    ++round_;
    if (!participants().counts_after(id(), round_)) continue;
    // The state is saved first: a run that is resumed from it repeats what completed() records.
    if (saves_here()) {
      task<void> saved = hooks_.save(*this);
      if (!saved.done()) co_await saved;
    }
    co_await record();
  }
}

PeerState PeerEngine::state() {
  return {round_, node_.steps_done(), {node_.counters().begin(), node_.counters().end()}};
}

std::vector<std::span<float>> PeerEngine::state_rows() {
  std::vector<std::span<float>> rows;
  for (std::size_t k = 0; k < memory_.front.size(); ++k)
    rows.push_back(node_.row(static_cast<int>(k)));
  rows.insert(rows.end(), memory_.state.begin(), memory_.state.end());
  return rows;
}

}  // namespace gossamer::gossip
