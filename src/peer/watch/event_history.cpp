#include "peer/watch/event_history.hpp"

#include <algorithm>
#include <utility>

#include "peer/watch/record_fields.hpp"

namespace gossamer::peer {

void EventHistory::add(EventLine line) {
  const auto place = order_ == Order::of_arrival
                         ? lines_.end()
                         : std::ranges::upper_bound(lines_, line.seconds, {}, &EventLine::seconds);
  lines_.insert(place, std::move(line));
  if (lines_.size() > kMost) lines_.pop_front();
}

void EventHistory::add(const Json& record, std::uint64_t version) {
  add({.changed = version,
       .seconds = number(record, "seconds"),
       .round = count(record, "round"),
       .peer = record["peer"].get<int>(),
       .event = record["event"].get<std::string>(),
       .text = event_text(record)});
}

}  // namespace gossamer::peer
