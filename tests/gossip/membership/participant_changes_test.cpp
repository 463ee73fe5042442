// The changes of participants that a peer knows: the participants of each round, and the rounds in
// which two peers differ.
#include "gossip/membership/participant_changes.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace gossamer;
using namespace gossamer::gossip;

namespace {

std::vector<std::vector<int>> peers_of(const std::vector<topology::ParticipantChange>& changes) {
  std::vector<std::vector<int>> peers;
  for (const auto& change : changes) peers.push_back(change.peers);
  return peers;
}

}  // namespace

TEST_CASE("changes of participants: the latest version that has taken effect counts") {
  ParticipantChanges changes({0, 1});
  CHECK(changes.latest(0) == 1);
  CHECK(changes.latest(2) == 0);
  CHECK(changes.latest_since(2) == 0);
  changes.add(2, 1, 20);
  changes.add(2, 2, 40);
  changes.add(0, 2, 20);
  CHECK_FALSE(changes.takes_part_at(2, 19));
  CHECK(changes.takes_part_at(2, 20));
  CHECK_FALSE(changes.takes_part_at(2, 40));
  CHECK(changes.latest(2) == 2);
  CHECK(changes.latest_since(2) == 40);
  CHECK(changes.has(2, 1, 20));
  CHECK_FALSE(changes.has(2, 1, 21));
  const auto timeline = changes.timeline(3);
  CHECK(peers_of(timeline) == std::vector<std::vector<int>>{{1, 2}, {1}});
  CHECK(timeline[0].first == 20);
  CHECK(timeline[1].first == 40);
}

TEST_CASE("changes of participants: in any order they give the same timeline") {
  ParticipantChanges one({0}), other({0});
  one.add(1, 1, 30);
  one.add(1, 2, 30);  // overtakes the first
  one.add(1, 1, 50);  // is overtaken
  one.add(2, 1, 20);
  other.add(2, 1, 20);
  other.add(1, 2, 30);
  CHECK(one.by_peer() == other.by_peer());
  CHECK(peers_of(one.timeline(3)) == std::vector<std::vector<int>>{{0, 2}});
}

TEST_CASE("changes of participants: if all leave at once, all stay") {
  ParticipantChanges changes({0, 1});
  changes.add(0, 2, 10);
  changes.add(1, 2, 10);
  CHECK(changes.timeline(2).empty());
  changes.add(1, 3, 20);  // and comes back
  CHECK(peers_of(changes.timeline(2)) == std::vector<std::vector<int>>{{1}});
}

TEST_CASE("changes of participants: all stay for a peer that joins as all leave, or later") {
  for (const Round first : {10, 20}) {
    ParticipantChanges changes({0, 1});
    changes.add(0, 2, 10);
    changes.add(1, 2, 10);
    changes.add(2, 1, first);
    const auto timeline = changes.timeline(3);
    CHECK(peers_of(timeline) == std::vector<std::vector<int>>{{0, 1, 2}});
    CHECK(timeline[0].first == first);
    changes.add(1, 3, 30);  // of those that were to leave, one stays for good
    CHECK(peers_of(changes.timeline(3)) == std::vector<std::vector<int>>{{0, 1, 2}, {1, 2}});
  }
}

TEST_CASE("changes of participants: where those of two peers differ, and until when") {
  ParticipantChanges own({0}), theirs({0});
  own.add(1, 1, 20);
  CHECK(own.last_difference(1, theirs) == 0);  // they do not know it
  theirs.add(1, 1, 50);
  CHECK(own.last_difference(1, theirs) == 50);
  CHECK(theirs.last_difference(1, own) == 50);
  own.add(1, 2, 60);
  CHECK(own.last_difference(1, theirs) == 50);
  theirs.add(1, 2, 40);  // overtakes the first
  CHECK(own.last_difference(1, theirs) == 60);
  CHECK(own.last_difference(0, theirs) == 0);
}
