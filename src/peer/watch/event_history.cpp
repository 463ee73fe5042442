#include "peer/watch/event_history.hpp"

#include <algorithm>
#include <utility>

#include "peer/log/recorder.hpp"
#include "peer/watch/record_fields.hpp"

namespace gossamer::peer {

int EventHistory::add_clock(std::uint64_t round, double seconds) {
  clocks_.push_back({round, seconds});
  return static_cast<int>(clocks_.size()) - 1;
}

double EventHistory::time(int clock, double seconds) const {
  if (clock == 0) return seconds;
  const Clock& joined = clocks_[static_cast<std::size_t>(clock)];
  // Of many rounds, not every one is kept. The process itself records the round in which it joins,
  // so the others may have recorded only the one before.
  auto round = rounds_->kept().upper_bound(joined.round);
  double begin = 0;
  for (int k = 0; k < 2 && round != rounds_->kept().begin(); ++k)
    begin = std::max(begin, (--round)->second.figures.seconds);
  return seconds - joined.seconds + begin;
}

void EventHistory::add(EventLine line) {
  lines_.push_back(std::move(line));
  if (lines_.size() <= kMost) return;
  const auto time_of = [this](const EventLine& each) { return time(each); };
  lines_.erase(order_ == Order::of_arrival ? lines_.begin()
                                           : std::ranges::min_element(lines_, {}, time_of));
}

void EventHistory::add(const Json& record, int clock, std::uint64_t version) {
  add({.changed = version,
       .clock = clock,
       .seconds = number(record, "seconds"),
       .round = count(record, "round"),
       .peer = record["peer"].get<int>(),
       .event = record["event"].get<std::string>(),
       .text = event_text(record)});
}

void EventHistory::add_end(const Json& record, int node, int clock, std::uint64_t version) {
  const auto reason = record["reason"].get<std::string>();
  const auto message = record["message"].get<std::string>();
  add({.changed = version,
       .clock = clock,
       .seconds = number(record, "seconds"),
       .round = count(record, "rounds"),
       .peer = node,
       .event = "ended",
       .text = message.empty() ? reason : reason + ": " + message});
  ends_[node] = {{{"reason", reason},
                  {"message", message},
                  {"rounds", record["rounds"]},
                  {"seconds", record["seconds"]}},
                 clock};
}

std::vector<EventLine> EventHistory::newest() const {
  std::vector<EventLine> lines(lines_.begin(), lines_.end());
  const auto time_of = [this](const EventLine& line) { return time(line); };
  if (order_ == Order::of_time) std::ranges::stable_sort(lines, {}, time_of);
  return lines;
}

Json EventHistory::end() const {
  const auto rank = [this](const auto& one) {
    const auto& [record, clock] = one.second;
    return std::pair(record["reason"] != "finished" && record["reason"] != kLeft,
                     time(clock, number(record, "seconds")));
  };
  return ends_.empty() ? Json() : std::ranges::max_element(ends_, {}, rank)->second.record;
}

}  // namespace gossamer::peer
