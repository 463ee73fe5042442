// Rounds remembered: the same matrices, built once as long as they are recent.
#include "topology/recent_rounds.hpp"

#include <doctest/doctest.h>

#include "tests/topology/test_util.hpp"

using namespace gossamer::topology;
using namespace gossamer::topology::test;

TEST_CASE("a random round is built once while it is among the last that were asked for") {
  const auto schedule = network("random_matching", 10).schedule();
  const RecentRounds recent(*schedule);
  const auto first = recent.at(0);
  CHECK(dense(*first) == dense(*schedule->at(0)));
  CHECK(recent.at(0).get() == first.get());
  for (Round t = 1; t < 16; ++t) CHECK(dense(*recent.at(t)) == dense(*schedule->at(t)));
  CHECK(recent.at(0).get() == first.get());  // asked for again, it is the youngest
  for (Round t = 16; t < 31; ++t) CHECK(recent.at(t)->peers() == 10);
  CHECK(recent.at(0).get() == first.get());
  for (Round t = 31; t < 47; ++t) CHECK(recent.at(t)->peers() == 10);
  CHECK(recent.at(0).get() != first.get());
  CHECK(dense(*recent.at(0)) == dense(*first));
}

TEST_CASE("of a periodic schedule it is that schedule") {
  const auto schedule = network("one_peer_exponential", 8).schedule();
  const RecentRounds recent(*schedule);
  for (Round t = 0; t < 40; ++t) CHECK(recent.at(t).get() == schedule->at(t).get());
  CHECK(recent.period() == schedule->period());
  CHECK(recent.hash() == schedule->hash());
}
