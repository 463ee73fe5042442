// The gap of realised mixing: as planned where nothing went otherwise, and what missing and late
// rows make of it.
#include "theory/realised.hpp"

#include <cmath>

#include "tests/theory/test_util.hpp"

using namespace gossamer;
using namespace gossamer::theory;
using namespace gossamer::theory::test;

namespace {

double gap_of(const MixingSchedule& schedule, Round rounds,
              const std::vector<Departure>& departures = {}) {
  const auto gap = realised_gap(schedule, rounds, departures);
  REQUIRE_MESSAGE(gap.ok(), (gap.ok() ? "" : gap.error().message));
  return *gap;
}

}  // namespace

TEST_CASE(
    "without departures the realised gap is the planned one within a hundredth, whatever the "
    "topology") {
  for (const topology::TopologyKind& kind : topology::kinds::catalog()) {
    if (kind.needs_values) continue;
    for (const bool lazy : {false, true}) {
      auto request = network(kind.name, 16);
      if (lazy) request.lazy();
      const auto schedule = request.schedule();
      CAPTURE(kind.name);
      CAPTURE(lazy);
      const double planned = topology::spectral_gap(*schedule);
      const double realised = gap_of(*schedule, 600);
      if (schedule->period() > 0) {
        CHECK(realised == doctest::Approx(planned).epsilon(0.01));
      } else {  // one random sequence contracts faster than the expected square (Jensen), and where
                // the peers are not alike, faster than the slowest direction of a single round
        CHECK(realised > planned);
        CHECK(realised < (schedule->law().alike ? 1.15 : 1.4) * planned);
      }
    }
  }
}

TEST_CASE("an edge that is never realised is as one that is not there") {
  const auto ring = network("ring", 9).schedule(), path = network("path", 9).uniform().schedule();
  std::vector<Departure>
      departures;  // ring and path have degree 2: uniform weights are those of the ring
  for (Round t = 0; t < 400; ++t) {
    departures.push_back({0, t, 8, std::nullopt});
    departures.push_back({8, t, 0, std::nullopt});
  }
  CHECK(gap_of(*ring, 400, departures) ==
        doctest::Approx(topology::spectral_gap(*path)).epsilon(0.01));
}

TEST_CASE("rows that are always a round late: the roots of the delayed recurrence") {
  const auto pair = network("complete", 2).schedule();
  std::vector<Departure> departures{{0, 0, 1, std::nullopt}, {1, 0, 0, std::nullopt}};
  for (Round t = 1; t < 900; ++t) {
    departures.push_back({0, t, 1, t - 1});
    departures.push_back({1, t, 0, t - 1});
  }
  // Of the difference D: D⁺ = ½ D − ½ D⁻, whose roots have modulus √½. Of a lazy pair: D⁺ = ¾ D − ¼
  // D⁻, modulus ½.
  CHECK(gap_of(*pair, 900, departures) == doctest::Approx(1 - std::sqrt(0.5)).epsilon(0.01));
  CHECK(gap_of(*network("complete", 2).lazy().schedule(), 900, departures) ==
        doctest::Approx(0.5).epsilon(0.01));
}

TEST_CASE(
    "one peer far behind, whose neighbours go on with what they have, and who uses rows of their "
    "future") {
  const auto ring = network("ring", 6).schedule();
  std::vector<Departure> departures;
  for (Round t = 0; t < 300; ++t)
    for (const int from : {1, 5}) {
      departures.push_back({0, t, from, std::min<Round>(3 * t, 299)});
      if (t % 3 != 0) departures.push_back({from, t, 0, t / 3});
      else if (t > 0) departures.push_back({from, t, 0, t / 3});
    }
  const double gap = gap_of(*ring, 300, departures);
  CHECK(gap > 0);
  CHECK(gap < topology::spectral_gap(*ring));
}

TEST_CASE("a history that cannot have happened, and one of no rounds, are refused") {
  const auto pair = network("complete", 2).schedule();
  const auto circle = realised_gap(*pair, 10, {{0, 3, 1, Round{5}}, {1, 4, 0, Round{6}}});
  REQUIRE_FALSE(circle.ok());
  CHECK(circle.error().kind == ErrorKind::data);
  CHECK(circle.error().message.find("was not there") != std::string::npos);
  CHECK_FALSE(realised_gap(*pair, 0, {}).ok());
}
