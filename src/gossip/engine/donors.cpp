#include "gossip/engine/donors.hpp"

#include <algorithm>
#include <span>

#include "gossip/algorithm.hpp"

namespace gossamer::gossip {
namespace {

/// The donor of a joining peer among the `neighbours` that have rows; none if none has.
int choose(std::span<const int> neighbours, const std::vector<bool>& has_rows,
           const std::map<int, int>& receivers) {
  int chosen = -1, fewest = 0;
  for (const int neighbour : neighbours) {
    if (!has_rows[static_cast<std::size_t>(neighbour)]) continue;
    const auto found = receivers.find(neighbour);
    const int count = found == receivers.end() ? 0 : found->second;
    if (chosen >= 0 && count >= fewest) continue;
    chosen = neighbour;
    fewest = count;
  }
  return chosen;
}

/// Of the peers of `part`, by their ids in the run: those that have no rows are not in `before`.
std::map<int, int> donors_among(const std::vector<int>& peers, const std::vector<int>& before,
                                const topology::MixingSchedule& part) {
  std::map<int, int> donors, receivers;  // by joining peer; how many, by donor's number in the part
  std::vector<bool> has_rows;
  std::vector<int> joining;
  for (std::size_t i = 0; i < peers.size(); ++i) {
    has_rows.push_back(std::ranges::binary_search(before, peers[i]));
    if (!has_rows.back()) joining.push_back(static_cast<int>(i));
  }
  // The rounds of a period connect all peers, so each pass finds a donor.
  while (!joining.empty()) {
    const std::vector<bool> had_rows = has_rows;
    for (const int i : joining) {
      const int donor = choose(mixing_partners(i, part), had_rows, receivers);
      if (donor < 0) continue;
      ++receivers[donor];
      donors[peers[static_cast<std::size_t>(i)]] = peers[static_cast<std::size_t>(donor)];
      has_rows[static_cast<std::size_t>(i)] = true;
    }
    std::erase_if(joining, [&](int i) { return has_rows[static_cast<std::size_t>(i)]; });
  }
  return donors;
}

}  // namespace

Donors::Donors(const topology::MixingSchedule& schedule) {
  const auto changes = schedule.participants().changes();
  const std::vector<const topology::MixingSchedule*> parts = schedule.parts();
  for (std::size_t k = 1; k < changes.size(); ++k)
    changes_.push_back(
        {changes[k].first, donors_among(changes[k].peers, changes[k - 1].peers, *parts[k])});
}

std::optional<Donors::Joining> Donors::last(int peer, Round t) const {
  std::optional<Joining> joining;
  for (const Change& change : changes_)
    if (const auto found = change.donors.find(peer);
        change.first <= t && found != change.donors.end())
      joining = {change.first, found->second};
  return joining;
}

std::vector<Donors::Receiver> Donors::receivers(int donor, Round first, Round last) const {
  std::vector<Receiver> receivers;
  for (const Change& change : changes_)
    for (const auto& [peer, from] : change.donors)
      if (from == donor && first <= change.first && change.first <= last)
        receivers.push_back({change.first, peer});
  return receivers;
}

bool Donors::gives(int donor, int peer, Round t) const {
  const std::optional<Joining> joining = last(peer, t);
  return joining && joining->round == t && joining->donor == donor;
}

}  // namespace gossamer::gossip
