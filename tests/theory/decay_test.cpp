// What mixing alone does in expectation: against closed forms, and one way against the other.
#include "theory/decay.hpp"

#include <cmath>

#include "tests/theory/test_util.hpp"

using namespace gossamer;
using namespace gossamer::theory;
using namespace gossamer::theory::test;

namespace {

std::vector<double> decay_of(const MixingSchedule& schedule, const std::vector<Round>& rounds,
                             bool sampled = false) {
  const auto decay = consensus_decay(schedule, 100, rounds);
  REQUIRE(decay);
  CHECK(decay->sampled == sampled);
  return decay->distance;
}

}  // namespace

TEST_CASE("closed forms: at the start, on two lazy peers, and on a complete graph") {
  CHECK(decay_of(*network("ring", 10).schedule(), {0})[0] ==
        doctest::Approx(std::sqrt(100 * 0.9)).epsilon(1e-12));
  const auto lazy = decay_of(*network("complete", 2).lazy().schedule(),
                             {0, 1, 5, 40});  // W = ¾ ¼: beside the mean times ½
  for (const auto& [at, t] : {std::pair{0, 0}, {1, 1}, {2, 5}, {3, 40}})
    CHECK(lazy[static_cast<std::size_t>(at)] ==
          doctest::Approx(std::sqrt(50) * std::pow(0.5, t)).epsilon(1e-12));
  CHECK(decay_of(*network("complete", 7).schedule(), {1})[0] == 0);
}

TEST_CASE("finite-time averaging: exactly 0 after τ rounds, and not before") {
  for (const auto& [kind, n, rounds] :
       {std::tuple{"one_peer_exponential", 16, 4}, {"base", 12, 5}, {"hypercube", 8, 0}}) {
    const auto schedule = network(kind, n).schedule();
    const auto exact = topology::rounds_to_exact(*schedule);
    if (rounds == 0) {
      CHECK_FALSE(exact);
      continue;
    }
    REQUIRE(exact);
    const auto decay = decay_of(*schedule, {*exact - 1, *exact, *exact + 1, 100});
    CHECK(decay[0] > 0.1);
    for (std::size_t i = 1; i < decay.size(); ++i) CHECK(decay[i] == 0);
  }
}

TEST_CASE("by modes, by the product, and sampled: the same decay") {
  const std::vector<Round> rounds{0, 1, 2, 3, 17, 64};
  for (const char* kind :
       {"ring", "exponential", "one_peer_exponential", "star", "random_regular"}) {
    CAPTURE(kind);
    const auto schedule = network(kind, 32).schedule();
    const auto quick = decay_of(*schedule, rounds);
    if (std::string(kind).find("exponential") == std::string::npos) {
      const auto product = decay_of(*untold(*schedule, 2), rounds);
      for (std::size_t i = 0; i < rounds.size(); ++i)
        CHECK(product[i] == doctest::Approx(quick[i]).epsilon(1e-9));
    }
  }
  const auto large = network("random_regular", 1500).schedule();
  const auto sampled = decay_of(*large, rounds, true);
  for (std::size_t i = 1; i < rounds.size(); ++i) CHECK(sampled[i] < sampled[i - 1]);
  CHECK(sampled[0] == doctest::Approx(10).epsilon(0.02));
}

TEST_CASE("sixty-five thousand peers by their waves") {
  const auto schedule = network("torus", 65536).schedule();
  const auto decay = decay_of(*schedule, {0, 100, 100000});
  CHECK(decay[0] == doctest::Approx(10).epsilon(1e-4));
  CHECK(decay[1] < 1);
  CHECK(decay[2] < decay[1]);
}
