#include "gossip/membership/participant_changes.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace gossamer::gossip {

// Where a later version takes effect no later, an earlier one never does.
void ParticipantChanges::add(int peer, ParticipantVersion version, Round first) {
  Versions& versions = by_peer_[peer];
  const auto overtakes = [&](const auto& known) {
    return known.first > version && known.second <= first;
  };
  if (std::ranges::any_of(versions, overtakes)) return;
  std::erase_if(versions,
                [&](const auto& known) { return known.first < version && known.second >= first; });
  versions[version] = first;
}

ParticipantVersion ParticipantChanges::latest(int peer) const {
  const auto found = by_peer_.find(peer);
  if (found != by_peer_.end()) return found->second.rbegin()->first;
  return first_.contains(peer) ? 1 : 0;
}

Round ParticipantChanges::latest_since(int peer) const {
  const auto found = by_peer_.find(peer);
  return found == by_peer_.end() ? 0 : found->second.rbegin()->second;
}

bool ParticipantChanges::has(int peer, ParticipantVersion version, Round first) const {
  const auto found = by_peer_.find(peer);
  if (found == by_peer_.end()) return false;
  const auto change = found->second.find(version);
  return change != found->second.end() && change->second == first;
}

bool ParticipantChanges::takes_part_at(int peer, Round t) const {
  ParticipantVersion version = first_.contains(peer) ? 1 : 0;
  if (const auto found = by_peer_.find(peer); found != by_peer_.end())
    for (const auto& [later, first] : found->second)
      if (first <= t) version = later;
  return takes_part(version);
}

std::size_t ParticipantChanges::to_come(int peer, Round t) const {
  const auto found = by_peer_.find(peer);
  if (found == by_peer_.end()) return 0;
  return static_cast<std::size_t>(
      std::ranges::count_if(found->second, [t](const auto& each) { return each.second > t; }));
}

Round ParticipantChanges::last_difference(int peer, const ParticipantChanges& others) const {
  std::set<Round> rounds;
  for (const ParticipantChanges* changes : {this, &others})
    if (const auto found = changes->by_peer_.find(peer); found != changes->by_peer_.end())
      for (const auto& [version, first] : found->second) rounds.insert(first);
  Round last = 0;
  bool differed = false;
  for (const Round t : rounds) {
    const bool differs = takes_part_at(peer, t) != others.takes_part_at(peer, t);
    if (differed && !differs) last = t;
    differed = differs;
  }
  return last;
}

std::vector<topology::ParticipantChange> ParticipantChanges::timeline(int peers) const {
  // Of versions that a later one has not overtaken the later ones also take effect later.
  std::map<Round, std::vector<std::pair<int, ParticipantVersion>>> rounds;
  for (const auto& [peer, versions] : by_peer_)
    for (const auto& [version, first] : versions) rounds[first].emplace_back(peer, version);
  std::vector<topology::ParticipantChange> changes;
  std::vector<int> last(first_.begin(), first_.end());
  std::set<int> taking_part = first_;
  for (const auto& [t, events] : rounds) {
    for (const auto& [peer, version] : events) {
      if (peer >= peers) continue;
      if (takes_part(version)) taking_part.insert(peer);
      else taking_part.erase(peer);
    }
    std::vector<int> present(taking_part.begin(), taking_part.end());
    std::vector<int> staying;
    std::ranges::set_intersection(last, present, std::back_inserter(staying));
    if (staying.empty()) {
      present.insert(present.end(), last.begin(), last.end());
      std::ranges::sort(present);
    }
    if (present == last) continue;
    changes.push_back({t, present});
    last = std::move(present);
  }
  return changes;
}

}  // namespace gossamer::gossip
