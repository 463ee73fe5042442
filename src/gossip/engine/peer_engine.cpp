#include "gossip/engine/peer_engine.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace gossamer::gossip {

PeerEngine::PeerEngine(Exchange& exchange, const Algorithm& algorithm, int id, NodeMemory memory,
                       const EngineOptions& options, EngineHooks& hooks)
    : algorithm_(algorithm),
      exchange_(exchange),
      memory_(std::move(memory)),
      options_(options),
      hooks_(hooks),
      node_(exchange, id, options.peers, algorithm.rows(exchange.schedule()), memory_) {}

void PeerEngine::tolerate_loss(Membership::Options plan) {
  membership_.emplace(exchange_, node_, std::move(plan));
}

Membership& PeerEngine::membership() {
  GOSSAMER_CHECK(membership_, "a loss that is not tolerated");
  return *membership_;
}

void PeerEngine::begin_at(Round round) {
  round_ = round;
  node_.endpoint().begin_at(round);
}

void PeerEngine::restore(const PeerState& state) {
  GOSSAMER_CHECK(state.counters.size() == node_.counters().size(), "counters of another algorithm");
  std::ranges::copy(state.counters, node_.counters().begin());
  algorithm_.resume(id(), state.round, node_.counters(), exchange_.schedule());
  node_.set_steps_done(state.steps);
  round_ = state.round;
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

task<void> PeerEngine::run() {
  if (joins_) {
    const Round first = co_await membership_->await_admission();
    round_ = first;
    if (!hooks_.joined(*this)) co_return;
  } else if (reinitialises_) {
    co_await node_.reinitialise_rows();
  }
  task<void> begun = hooks_.completed(*this);
  if (!begun.done()) co_await begun;
  while (round_ < last()) {
    in_round_ = true;
    bool reinitialised = false;
    if (membership_) reinitialised = co_await membership_->begin_round(round_);
    hooks_.before_round(*this, reinitialised);
    co_await algorithm_.round(node_, round_);
    const bool goes_on = hooks_.after_round(*this);
    in_round_ = false;
    if (!goes_on) co_return;
    // The state of a peer that leaves rounds out is the same after each of them.
    const Round next = node_.endpoint().next_round(round_, last());
    while (round_ < next) {
      ++round_;
      // The state is saved first: a run that is resumed from it repeats what completed() records.
      if (saves_here()) {
        task<void> saved = hooks_.save(*this);
        if (!saved.done()) co_await saved;
      }
      task<void> recorded = hooks_.completed(*this);
      if (!recorded.done()) co_await recorded;
    }
  }
  co_await node_.endpoint().flush_sends();
  co_await algorithm_.drain(node_);
  finished_ = true;
  hooks_.finished(*this);
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
