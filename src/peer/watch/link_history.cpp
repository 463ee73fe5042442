#include "peer/watch/link_history.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "peer/watch/run_header.hpp"

namespace gossamer::peer {

const std::vector<int>& LinkHistory::neighbours(int peer) const {
  static const std::vector<int> none;
  return neighbours_.empty() ? none : neighbours_[static_cast<std::size_t>(peer)];
}

bool LinkHistory::is_neighbour(int peer, int other) const {
  const std::vector<int>& all = neighbours(peer);
  return std::ranges::find(all, other) != all.end();
}

void LinkHistory::set_lost(int from, int to, bool lost, const std::string& cause,
                           std::uint64_t version) {
  if (lost) lost_.insert({from, to});
  else lost_.erase({from, to});
  LinkFigures& link = figures_[std::minmax(from, to)];
  link.lost = lost || lost_.contains({to, from});
  link.suspected = link.suspected && !link.lost;
  link.cause = lost ? cause : link.lost ? link.cause : "";
  link.changed = version;
}

void LinkHistory::set_suspected(int a, int b, bool suspected, std::uint64_t version) {
  const Link ends = std::minmax(a, b);
  if (!suspected && !figures_.contains(ends)) return;
  LinkFigures& link = figures_[ends];
  link.suspected = suspected && !link.lost;
  link.changed = version;
}

void LinkHistory::set_route(int a, int b, const std::string& route, int relay,
                            std::uint64_t version) {
  LinkFigures& link = figures_[std::minmax(a, b)];
  if (link.route == route && link.relay == relay) return;
  link.route = route;
  link.relay = relay;
  link.changed = version;
}

void LinkHistory::set_sent(int peer, const Json& sent, std::uint64_t version) {
  if (!sent.is_array()) return;
  for (const Json& one : sent) {
    if (!is_list(one, std::numeric_limits<std::int64_t>::max()) || one.size() != 2) return;
    const auto to = one[0].get<std::int64_t>();
    if (to > std::numeric_limits<int>::max() || !is_neighbour(peer, static_cast<int>(to))) return;
    LinkFigures& link = figures_[std::minmax(peer, static_cast<int>(to))];
    std::uint64_t& bytes = peer < to ? link.sent_by_lower : link.sent_by_higher;
    if (std::exchange(bytes, one[1].get<std::uint64_t>()) != bytes) link.changed = version;
  }
}

std::vector<LinkHistory::Link> LinkHistory::lost_in(std::uint64_t round) const {
  std::set<Link> lost;
  for (const Change& change : changes_) {
    if (change.round > round) continue;
    if (change.lost) lost.emplace(change.from, change.to);
    else lost.erase({change.from, change.to});
  }
  std::set<Link> links;
  for (const auto& [from, to] : lost)
    if (may_be_edge({from, to})) links.insert(std::minmax(from, to));
  return {links.begin(), links.end()};
}

}  // namespace gossamer::peer
