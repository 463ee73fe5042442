#include "gossip/peer_view.hpp"

#include <algorithm>

namespace gossamer::gossip {

bool PeerView::is_present(int peer, Round t) const {
  if (lost_.contains(peer)) return false;
  const auto since = present_since_.find(peer);
  return since == present_since_.end() || since->second.since <= t;
}

Round PeerView::present_since(int peer) const {
  const auto found = present_since_.find(peer);
  return found == present_since_.end() ? 0 : found->second.since;
}

bool PeerView::is_proposed(int peer) const {
  const auto found = present_since_.find(peer);
  return found != present_since_.end() && found->second.proposed;
}

bool PeerView::remove(int peer) {
  if (!lost_.insert(peer).second) return false;
  present_since_.erase(peer);
  return true;
}

void PeerView::restore(int peer, Round first) {
  lost_.erase(peer);
  present_since_[peer] = {first};
}

bool PeerView::is_complete(const topology::MixingMatrix& w, Round t) const {
  const auto is_here = [&](int peer) { return is_present(peer, t); };
  return is_complete() ||
         (std::ranges::all_of(w.out_neighbours(peer_), is_here) &&
          std::ranges::all_of(w.in_neighbours(peer_), is_here, &topology::Neighbour::peer));
}

std::span<const topology::Neighbour> PeerView::in_neighbours(const topology::MixingMatrix& w,
                                                             Round t) {
  if (is_complete()) return w.in_neighbours(peer_);
  in_neighbours_.clear();
  for (const topology::Neighbour& neighbour : w.in_neighbours(peer_))
    if (is_present(neighbour.peer, t)) in_neighbours_.push_back(neighbour);
  return in_neighbours_;
}

std::span<const int> PeerView::out_neighbours(const topology::MixingMatrix& w, Round t) {
  if (is_complete()) return w.out_neighbours(peer_);
  out_neighbours_.clear();
  for (const int peer : w.out_neighbours(peer_))
    if (is_present(peer, t)) out_neighbours_.push_back(peer);
  return out_neighbours_;
}

double PeerView::own_weight(const topology::MixingMatrix& w, Round t) const {
  double own = w.self_weight(peer_);
  for (const int receiver : w.out_neighbours(peer_)) {
    if (is_present(receiver, t)) continue;
    for (const topology::Neighbour& neighbour : w.in_neighbours(receiver))
      if (neighbour.peer == peer_) own += neighbour.weight;
  }
  return own;
}

bool PeerView::is_mirrored(const topology::MixingMatrix& w) const {
  const auto in_neighbours = w.in_neighbours(peer_);
  return in_neighbours.size() == w.out_neighbours(peer_).size() &&
         std::ranges::all_of(in_neighbours, [&](const topology::Neighbour& takes) {
           return std::ranges::any_of(w.in_neighbours(takes.peer),
                                      [&](const topology::Neighbour& gives) {
                                        return gives.peer == peer_ && gives.weight == takes.weight;
                                      });
         });
}

void PeerView::record_absent(Round t, Channel channel) {
  if (is_complete()) return;
  const auto matrix = schedule_.at(t);
  for (const topology::Neighbour& neighbour : matrix->in_neighbours(peer_))
    if (!is_present(neighbour.peer, t)) record({t, neighbour.peer, channel, true});
}

void PeerView::record_skipped(const topology::MixingMatrix& w, Round t, Channel channel) {
  for (const topology::Neighbour& neighbour : w.in_neighbours(peer_))
    record({t, neighbour.peer, channel, true});
}

}  // namespace gossamer::gossip
