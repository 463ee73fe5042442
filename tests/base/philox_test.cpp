#include "base/philox.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

using namespace gossamer;

// The known-answer vectors of Random123 (Salmon et al.), philox4x32 with 10 rounds.
TEST_CASE("Philox4x32-10 gives the published vectors") {
  using Words = std::array<std::uint32_t, 4>;
  CHECK(philox4x32({0, 0, 0, 0}, {0, 0}) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
        Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("streams with different keys never meet, and equal ones are equal") {
  std::set<std::uint64_t> first;
  int streams = 0;
  for (std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 40})
    for (std::uint32_t peer : {0U, 1U, kNoPeer})
      for (Purpose purpose : {Purpose::shuffle, Purpose::data, Purpose::test})
        for (std::uint64_t step : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 33}) {
          first.insert(RandomStream(seed, peer, purpose, step).next_u64());
          CHECK(RandomStream(seed, peer, purpose, step).next_u64() ==
                RandomStream(seed, peer, purpose, step).next_u64());
          ++streams;
        }
  CHECK(first.size() == static_cast<std::size_t>(streams));
}

TEST_CASE("moments of the uniform, normal and gamma variates") {
  RandomStream random(7, 0, Purpose::test);
  constexpr int kDraws = 200000;
  double uniform = 0, normal = 0, square = 0, gamma = 0, small_gamma = 0;
  for (int i = 0; i < kDraws; ++i) {
    uniform += random.next_double();
    const double z = random.next_normal();
    normal += z;
    square += z * z;
    gamma += random.next_gamma(2.5);
    small_gamma += random.next_gamma(0.1);
  }
  CHECK(std::abs(uniform / kDraws - 0.5) < 0.003);
  CHECK(std::abs(normal / kDraws) < 0.01);
  CHECK(std::abs(square / kDraws - 1) < 0.015);
  CHECK(std::abs(gamma / kDraws - 2.5) < 0.02);
  CHECK(std::abs(small_gamma / kDraws - 0.1) < 0.005);
}

TEST_CASE("below is unbiased and in range") {
  RandomStream random(3, 1, Purpose::test);
  std::vector<int> hits(7);
  for (int i = 0; i < 70000; ++i) ++hits[random.below(7)];
  for (int count : hits) CHECK(std::abs(count - 10000) < 500);
}

TEST_CASE("shuffle permutes") {
  std::vector<std::uint32_t> values(1000), sorted;
  std::iota(values.begin(), values.end(), 0U);
  RandomStream(1, 2, Purpose::shuffle, 3).shuffle(values);
  sorted = values;
  CHECK_FALSE(std::is_sorted(values.begin(), values.end()));
  std::sort(sorted.begin(), sorted.end());
  for (std::uint32_t i = 0; i < 1000; ++i) CHECK(sorted[i] == i);
}
