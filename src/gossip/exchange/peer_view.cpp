// The endpoint's half that deals in who is there: whose rows a mix goes without, who comes back,
// and which rounds are left out.
#include <algorithm>

#include "gossip/exchange/buffered_mix.hpp"
#include "gossip/exchange/exchange.hpp"
#include "gossip/exchange/mix_operation.hpp"

namespace gossamer::gossip {

bool Endpoint::present(int peer, Round t) const {
  if (lost_.contains(peer)) return false;
  const auto entered = entered_.find(peer);
  return entered == entered_.end() || entered->second <= t;
}

/// W[i][i], and what those who are not there would have been given.
double Endpoint::own_weight(const topology::MixingMatrix& w, Round t) const {
  double own = w.self_weight(peer_);
  for (const int hearer : w.out_neighbours(peer_)) {
    if (present(hearer, t)) continue;
    for (const topology::Neighbour& neighbour : w.in_neighbours(hearer))
      if (neighbour.peer == peer_) own += neighbour.weight;
  }
  return own;
}

/// This peer gives each other one what it takes of it.
bool Endpoint::is_mirrored(const topology::MixingMatrix& w) const {
  const auto in_neighbours = w.in_neighbours(peer_);
  return in_neighbours.size() == w.out_neighbours(peer_).size() &&
         std::ranges::all_of(in_neighbours, [&](const topology::Neighbour& takes) {
           return std::ranges::any_of(w.in_neighbours(takes.peer),
                                      [&](const topology::Neighbour& gives) {
                                        return gives.peer == peer_ && gives.weight == takes.weight;
                                      });
         });
}

std::span<const topology::Neighbour> Endpoint::in_neighbours(const topology::MixingMatrix& w,
                                                             Round t) {
  if (lost_.empty() && entered_.empty()) return w.in_neighbours(peer_);
  heard_here_.clear();
  for (const topology::Neighbour& neighbour : w.in_neighbours(peer_))
    if (present(neighbour.peer, t)) heard_here_.push_back(neighbour);
  return heard_here_;
}

std::span<const int> Endpoint::out_neighbours(const topology::MixingMatrix& w, Round t) {
  if (lost_.empty() && entered_.empty()) return w.out_neighbours(peer_);
  hearing_here_.clear();
  for (const int peer : w.out_neighbours(peer_))
    if (present(peer, t)) hearing_here_.push_back(peer);
  return hearing_here_;
}

/// Puts on record whom a mix misses because they are not there.
void Endpoint::record_absent(Round t, Channel channel) {
  if (lost_.empty() && entered_.empty()) return;
  const auto matrix = exchange_.schedule().at(t);
  for (const topology::Neighbour& neighbour : matrix->in_neighbours(peer_))
    if (!present(neighbour.peer, t)) deviations_.push_back({t, neighbour.peer, channel, true});
}

void Endpoint::lose(int peer) {
  if (lost_.insert(peer).second) {
    entered_.erase(peer);
    for (auto& [channel, mix] : operations_)
      if (const auto deviation = mix->lose(peer)) deviations_.push_back(*deviation);
    for (auto& [channel, staged] : staged_) staged->lose(peer);
  }
  for (auto& [key, inbox] : inboxes_)
    if (key.first == peer) inbox.close();
  for (auto& [channel, mix] : operations_) mix->arrived();
}

void Endpoint::enter(int peer, Round first) {
  GOSSAMER_CHECK(lost_.contains(peer) && first >= earliest_next(),
                 "one enters that is there, or in a round that has begun");
  lost_.erase(peer);
  entered_[peer] = first;
  for (auto& [key, inbox] : inboxes_)
    if (key.first == peer) inbox.reopen();
  for (auto& [channel, staged] : staged_) staged->enter(peer, first);
}

Channel Endpoint::state_channel() const { return exchange_.options().channels; }

void Endpoint::expect_state_from(std::optional<int> donor) {
  if (donor_) inbox(*donor_, state_channel()).close();
  donor_ = donor;
  if (donor_) inbox(*donor_, state_channel()).reopen();
}

Round Endpoint::next_round(Round t, Round last) {
  Round next = t + 1;
  if (exchange_.options().policy == Policy::deadline)
    next = std::max(next, pace_.next(t, others(), exchange_.scheduler().now()));
  next = std::min(std::max(next, leap_), last);
  round_ = next;
  if (next == t + 1 && next < last) return next;
  for (Round skipped = t + 1; skipped < next; ++skipped) {
    const auto matrix = exchange_.schedule().at(skipped);
    const auto leave_out = [&](Channel channel) {
      for (const topology::Neighbour& neighbour : matrix->in_neighbours(peer_))
        deviations_.push_back({skipped, neighbour.peer, channel, true});
    };
    if (exchange_.options().policy == Policy::sync)
      for (const auto& [channel, mix] : operations_) leave_out(channel);
    for (const auto& [channel, staged] : staged_) {
      leave_out(channel);
      for (const topology::Neighbour& neighbour :
           matrix->in_neighbours(peer_))  // told too, though they may never have been met
        if (present(neighbour.peer)) staged->expect(neighbour.peer);
    }
  }
  for (auto& [channel, staged] : staged_) staged->skip_to(next);
  return next;
}

Pace::Others Endpoint::others() const {
  Pace::Others others;
  for (const auto& [channel, staged] : staged_) {
    staged->rounds_seen(others.seen);
    others.took_part = others.took_part || staged->took_part();
  }
  return others;
}

}  // namespace gossamer::gossip
