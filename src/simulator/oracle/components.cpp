#include "simulator/oracle/components.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "simulator/oracle/bounds.hpp"

namespace gossamer::simulator {

namespace {

std::vector<int> left_at_the_end(const TraceIndex& index) {
  std::vector<int> left;
  for (int a = 0; a < index.incarnations(); ++a)
    if (index.incarnation(a).alive && !index.incarnation(a).rounds.empty()) left.push_back(a);
  return left;
}

std::vector<Component> components_among(const TraceIndex& index, const std::vector<int>& left) {
  std::vector<Component> components;
  std::set<int> seen;
  for (const int a : left) {
    if (!seen.insert(a).second) continue;
    Component component{a};
    for (std::size_t k = 0; k < component.size(); ++k)
      for (const int b : left)
        if (linked(index, component[k], b) && seen.insert(b).second) component.push_back(b);
    std::ranges::sort(component);
    components.push_back(component);
  }
  return components;
}

}  // namespace

std::vector<Component> components_of(const TraceIndex& index) {
  return components_among(index, left_at_the_end(index));
}

std::vector<Component> components_at_the_end(const TraceIndex& index) {
  std::vector<int> left = left_at_the_end(index);
  std::erase_if(left, [&index](int a) {
    return !index.protocol.participants().takes_part(index.peer_of(a), index.rounds() - 1);
  });
  return components_among(index, left);
}

std::optional<Round> awaited_round(const TraceIndex& index, int a) {
  const Incarnation& each = index.incarnation(a);
  if (!each.alive || each.finished || each.stopped) return std::nullopt;
  if (each.joins && each.rounds.empty()) return 0;
  const Round after =
      each.rounds.empty() ? index.trace.first_round() : each.rounds.back().round + 1;
  const auto next = index.protocol.participants().next_round(each.peer, after);
  if (!next || !index.protocol.enters(each.peer, *next)) return std::nullopt;
  return *next;
}

/// It lies beyond the rounds that are done while a proposal and its answer are in flight.
Round latest_agreed_round(const TraceIndex& index, int a, Time when) {
  const Time before = when - settling_time(index.scenario, index.protocol);
  const Round now = index.round_at(a, when);
  return now + (now - index.round_at(a, before)) + 4;
}

namespace {

/// Links that counted, and were up by then, connect the component.
bool was_connected(const TraceIndex& index, const Component& component, Time by) {
  std::set<int> seen{component.front()};
  std::vector<int> reached{component.front()};
  for (std::size_t k = 0; k < reached.size(); ++k)
    for (const int b : component) {
      const LinkPeriod* link = index.links().at_the_end(reached[k], b);
      if (link == nullptr || !(link->from_start || link->used) || link->restored_at > by ||
          seen.contains(b))
        continue;
      seen.insert(b);
      reached.push_back(b);
    }
  return reached.size() == component.size();
}

}  // namespace

Quiescence quiescence_of(const TraceIndex& index, const Component& component) {
  Quiescence quiet;
  bool any_restored = false;
  Time last_at{0};
  const auto add = [&](Round round, Time at, bool counted) {
    quiet.from = std::max(quiet.from, round);
    quiet.since = std::max(quiet.since, at);
    if (!counted || (quiet.last != kNever && round <= quiet.last)) return;
    quiet.last = round;
    last_at = at;
  };
  for (const auto& [ends, periods] : index.links().periods()) {
    if (!std::ranges::binary_search(component, ends.first)) continue;
    for (const LinkPeriod& link : periods) {
      // A link that only the other end used may not have been known to count here.
      const bool counted = link.from_start || link.used;
      if (link.lost != kNever) add(link.lost, link.lost_at, counted);
      if (link.from_start) continue;
      any_restored = true;
      const LinkPeriod* other = index.links().other_end(ends.first, link);
      add(link.entered == kNever ? link.restored : link.entered,
          std::max(link.restored_at, other == nullptr ? Time(0) : other->restored_at), counted);
    }
  }
  quiet.announced = quiet.last != kNever && was_connected(index, component, last_at);
  if (!any_restored) return quiet;
  quiet.since = std::max(quiet.since, faults_end(index.scenario)) +
                settling_time(index.scenario, index.protocol);
  for (const int a : component)
    quiet.from = std::max(quiet.from, latest_agreed_round(index, a, quiet.since));
  return quiet;
}

bool ended_unnoticed(const TraceIndex& index, const Component& component) {
  return std::ranges::any_of(index.links().periods(), [&](const auto& entry) {
    const auto& [ends, periods] = entry;
    if (periods.empty() || !std::ranges::binary_search(component, ends.first)) return false;
    const LinkPeriod& last = periods.back();
    return last.lost == kNever && !index.incarnation(last.other).rounds.empty() &&
           !std::ranges::binary_search(component, last.other);
  });
}

std::string names_of(const TraceIndex& index, const Component& component) {
  std::string text;
  for (const int a : component)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", index.peer_of(a));
  return text;
}

}  // namespace gossamer::simulator
