#include "gossip/membership/link_state_table.hpp"

#include <algorithm>
#include <limits>

namespace gossamer::gossip {

bool LinkStateTable::is_link(LinkEnd end) const {
  const auto [peer, other] = end;
  return std::min(peer, other) >= 0 && std::max(peer, other) < peers() &&
         std::ranges::binary_search((*partners_)[static_cast<std::size_t>(peer)], other);
}

LinkVersion LinkStateTable::version(LinkEnd end) const {
  const auto known = versions_.find(end);
  return known == versions_.end() ? 0 : known->second;
}

bool LinkStateTable::merge(LinkEnd end, LinkVersion version) {
  if (version <= this->version(end)) return false;
  versions_[end] = version;
  return true;
}

LinkVersion LinkStateTable::next_version(LinkEnd end, bool lost) const {
  constexpr LinkVersion kMost = std::numeric_limits<LinkVersion>::max();
  const LinkVersion known = version(end), step = is_lost(known) == lost ? 2 : 1;
  // No run counts so high: such a version was invented by a faulty peer, and cannot be superseded.
  return known <= kMost - step ? known + step : kMost - (lost ? 0 : 1);
}

bool LinkStateTable::is_strongly_connected(const topology::MixingSchedule& schedule,
                                           topology::Round t) const {
  const ArcsAmong& arcs = arcs_in(schedule, t);
  return reached_over(arcs.out) == reached_over(arcs.in);
}

// An undirected graph is strongly connected wherever it is connected. Of a directed random sequence
// the first rounds stand for all, as in the checks of W.
const LinkStateTable::ArcsAmong& LinkStateTable::arcs_in(const topology::MixingSchedule& schedule,
                                                         topology::Round t) const {
  constexpr topology::Round kDrawn = 100;
  const std::size_t index = schedule.participants().index_at(t);
  const std::vector<int>& ids = schedule.participants().changes()[index].peers;
  const topology::MixingSchedule& part = *schedule.parts()[index];
  if (arcs_.schedule == &part && arcs_.ids == ids) return arcs_;
  arcs_ = {ids, &part, Arcs(partners_->size()), Arcs(partners_->size())};
  const bool drawn = part.period() == 0 && !part.law().undirected;
  const auto rounds = drawn ? kDrawn : static_cast<topology::Round>(part.period());
  for (topology::Round round = 0; round < rounds; ++round) {
    const auto w = part.at(round);
    for (int i = 0; i < w->peers(); ++i)
      for (const topology::Neighbour& j : w->in_neighbours(i)) {
        const int to = ids[static_cast<std::size_t>(i)],
                  from = ids[static_cast<std::size_t>(j.peer)];
        arcs_.in[static_cast<std::size_t>(to)].push_back(from);
        arcs_.out[static_cast<std::size_t>(from)].push_back(to);
      }
  }
  for (Arcs* arcs : {&arcs_.in, &arcs_.out})
    for (std::vector<int>& ends : *arcs) {
      std::ranges::sort(ends);
      ends.erase(std::ranges::unique(ends).begin(), ends.end());
    }
  return arcs_;
}

/// The peers that arcs lead to from this one where their links are up, ascending.
std::vector<int> LinkStateTable::reached_over(const Arcs& arcs) const {
  std::vector<bool> seen(arcs.size());
  std::vector<int> reached{peer_};
  seen[static_cast<std::size_t>(peer_)] = true;
  const auto is_up = [this](int a, int b) {
    return !is_lost(version({a, b})) && !is_lost(version({b, a}));
  };
  for (std::size_t k = 0; k < reached.size(); ++k)
    for (const int next : arcs[static_cast<std::size_t>(reached[k])]) {
      if (seen[static_cast<std::size_t>(next)] || !is_up(reached[k], next)) continue;
      seen[static_cast<std::size_t>(next)] = true;
      reached.push_back(next);
    }
  std::ranges::sort(reached);
  return reached;
}

}  // namespace gossamer::gossip
