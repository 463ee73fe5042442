#include "peer/watch/link_history.hpp"

#include <algorithm>

namespace gossamer::peer {

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
  link.route = route;
  link.relay = relay;
  link.changed = version;
}

void LinkHistory::set_sent(int from, int to, std::uint64_t bytes, std::uint64_t version) {
  LinkFigures& link = figures_[std::minmax(from, to)];
  (from < to ? link.sent_by_lower : link.sent_by_higher) = bytes;
  link.changed = version;
}

std::vector<LinkHistory::Link> LinkHistory::lost_in(std::uint64_t round) const {
  std::set<Link> lost;
  for (const Change& change : changes_) {
    if (change.round > round) continue;
    if (change.lost) lost.emplace(change.from, change.to);
    else lost.erase({change.from, change.to});
  }
  std::set<Link> links;
  for (const auto& [from, to] : lost) links.insert(std::minmax(from, to));
  return {links.begin(), links.end()};
}

}  // namespace gossamer::peer
