#include "gossip/membership.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gossamer::gossip {
namespace {

constexpr int kIdBits = 16;  // run.peers is at most 65,535

std::uint64_t pack(std::pair<int, int> ends) {
  return static_cast<std::uint64_t>(ends.first) << kIdBits | static_cast<std::uint64_t>(ends.second);
}

}  // namespace

Membership::Membership(Exchange& exchange, Endpoint& endpoint, Plan plan)
    : exchange_(exchange), endpoint_(endpoint), plan_(std::move(plan)), reachable_(reachable().size()) {}

void Membership::lost(int peer, const std::string& why) {
  if (!endpoint_.present(peer)) return;
  plan_.message(fmt::format("{}; peer {} goes on without it", why, endpoint_.peer()));
  const Round t = endpoint_.round();
  endpoint_.lose(peer);
  take(std::minmax(endpoint_.peer(), peer), t, endpoint_.peer());
}

Status Membership::heard(const ChunkHead& head) {
  const auto id = [&](int shift) { return static_cast<int>(head.total >> shift & ((1U << kIdBits) - 1)); };
  const LinkEnds ends{id(kIdBits), id(0)};
  const auto n = static_cast<int>(plan_.partners.size());
  if (head.total >> (2 * kIdBits) != 0 || ends.first >= ends.second || ends.second >= n ||
      !std::ranges::binary_search(plan_.partners[static_cast<std::size_t>(ends.first)], ends.second))
    return protocol_error(head, "it tells of a link that there is not");
  take(ends, head.round, head.from);
  return {};
}

/// News of a link's loss in round t, from `from`, goes on to everybody else.
void Membership::take(LinkEnds ends, Round t, int from) {
  if (!news_.insert({ends, t}).second) return;
  lost_.insert(ends);
  const Round restart = t + plan_.partners.size();
  if (restart > endpoint_.round()) restarts_.insert(restart);
  else take(ends, endpoint_.round(), endpoint_.peer());  // it came too late (deadline): all begin again once more
  for (const int partner : plan_.partners[static_cast<std::size_t>(endpoint_.peer())]) {
    if (partner == from || !endpoint_.present(partner)) continue;
    const ChunkHead head{endpoint_.peer(), partner, t, 0, 0, pack(ends), Note::link_lost};
    exchange_.link(endpoint_.peer(), partner).send(Chunk(head, {}, {}));
  }
  const std::vector<int> here = reachable();
  if (here.size() == std::exchange(reachable_, here.size())) return;
  std::vector<int> gone;
  for (int peer = 0; peer < static_cast<int>(plan_.partners.size()); ++peer)
    if (!std::ranges::binary_search(here, peer)) gone.push_back(peer);
  plan_.message(fmt::format("peer {} is out of reach; {} of {} peers go on", fmt::join(gone, ", "), here.size(),
                            plan_.partners.size()));
}

bool Membership::restarts(Round t) {
  const auto end = restarts_.upper_bound(t);
  const bool any = end != restarts_.begin();
  restarts_.erase(restarts_.begin(), end);
  return any;
}

std::vector<int> Membership::reachable() const {
  std::vector<bool> seen(plan_.partners.size());
  std::vector<int> reached{endpoint_.peer()};
  seen[static_cast<std::size_t>(endpoint_.peer())] = true;
  for (std::size_t k = 0; k < reached.size(); ++k)
    for (const int partner : plan_.partners[static_cast<std::size_t>(reached[k])]) {
      if (seen[static_cast<std::size_t>(partner)] || lost_.contains(std::minmax(reached[k], partner))) continue;
      seen[static_cast<std::size_t>(partner)] = true;
      reached.push_back(partner);
    }
  std::ranges::sort(reached);
  return reached;
}

}  // namespace gossamer::gossip
