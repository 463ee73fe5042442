// The events of a run, and how its processes ended, in the order of one clock.
#include "peer/watch/event_history.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/peer/watch/records.hpp"

using namespace gossamer::peer;
using namespace gossamer::peer::testing;

namespace {

Json joined(int peer, int round) {
  Json record = link_of(peer, 0, false);
  record["round"] = round;
  record["seconds"] = 0.0;
  record["event"] = "joined";
  record["neighbour"] = nullptr;
  record["reachable_peers"] = 3;
  return record;
}

Json lost_at(int peer, double seconds) {
  Json record = link_of(peer, 3, true);
  record["seconds"] = seconds;
  return record;
}

Json end_at(double seconds) {
  Json end = end_of("finished");
  end["seconds"] = seconds;
  return end;
}

/// Rounds of half a second, from the start on.
void add_rounds(RunView& view, int peer, int last) {
  for (int round = 0; round <= last; round += 2) view.add(round_of(peer, round, 1), {peer});
}

std::vector<double> seconds_of(const RunView& view) {
  std::vector<double> all;
  for (const EventLine& event : view.after(0).events) all.push_back(event.seconds);
  return all;
}

}  // namespace

TEST_CASE("A process that joins counts seconds from 0, and its events are in their place") {
  RunView view;
  for (const int peer : {0, 1, 2}) REQUIRE(view.begin(header_of(4, {peer})).ok());
  view.add(joined(2, 20), {2});  // at 10 s; its log is read before the others
  view.add(lost_at(2, 3), {2});
  view.add(end_at(11), {2});
  for (const int peer : {0, 1}) add_rounds(view, peer, 40);
  for (const double seconds : {12.0, 14.0}) view.add(lost_at(0, seconds), {0});
  view.add(end_at(20), {0});
  view.add(end_at(20.5), {1});
  CHECK(seconds_of(view) == std::vector<double>{0, 12, 3, 14, 20, 20.5, 11});
  CHECK(view.after(0).end["seconds"] == 11);  // at 21 s
}

TEST_CASE("A process that is started again has a new clock, and one that goes on has not") {
  RunView view;
  for (const int peer : {0, 1, 2}) REQUIRE(view.begin(header_of(4, {peer})).ok());
  for (const int peer : {0, 1}) add_rounds(view, peer, 40);
  add_rounds(view, 2, 10);
  view.add(lost_at(2, 5), {2});
  view.add(joined(2, 30), {2});  // at 15 s
  view.add(lost_at(2, 1), {2});
  view.add(round_of(2, 40, 1), {2});
  view.add(lost_at(0, 6), {0});
  Json again = joined(1, 40);
  again["seconds"] = 20.5;
  view.add(again, {1});
  CHECK(seconds_of(view) == std::vector<double>{5, 6, 0, 1, 20.5});
}

TEST_CASE("The seconds of a round go on after the peers that began have left") {
  RunView view;
  for (const int peer : {0, 2}) REQUIRE(view.begin(header_of(4, {peer})).ok());
  add_rounds(view, 0, 20);
  view.add(joined(2, 21), {2});
  Json record = round_of(2, 21, 1);
  record["seconds"] = 0;
  view.add(record, {2});
  CHECK(view.after(0).rounds.back().seconds == 10);
  record["round"] = 30;
  record["seconds"] = 4;
  view.add(record, {2});
  CHECK(view.after(0).rounds.back().seconds == 14);
}

TEST_CASE("Of too many events the oldest on the clock of the run are left out") {
  RunView view;
  for (const int peer : {0, 2}) REQUIRE(view.begin(header_of(4, {peer})).ok());
  add_rounds(view, 0, 20);
  view.add(joined(2, 20), {2});                                      // at 10 s
  for (int k = 0; k < 150; ++k) view.add(lost_at(2, k), {2});        // from 10 s on
  for (int k = 0; k < 150; ++k) view.add(lost_at(0, k + 0.5), {0});  // from 0.5 s on
  const std::vector<EventLine> events = view.after(0).events;
  REQUIRE(events.size() == EventHistory::kMost);
  for (const EventLine& event : events) CHECK(event.seconds >= (event.peer == 2 ? 45 : 55));
}
