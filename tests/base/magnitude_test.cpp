// Magnitude checks, value by value: finite, and within a bound.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/magnitude.hpp"
#include "base/philox.hpp"

using namespace gossamer;

TEST_CASE("the first value that is not finite, or beyond the bound, wherever it is") {
  using Limits = std::numeric_limits<float>;
  const float bound = 1e18F, above = std::nextafter(bound, Limits::max());
  RandomStream random(1, 0, Purpose::test);
  for (const std::size_t length : {1U, 7U, 8U, 33U, 4095U, 4096U, 4097U, 10'000U})
    for (const std::size_t offset : {0U, 1U, 3U}) {
      std::vector<float> values(length + offset);
      for (float& value : values) value = static_cast<float>(random.next_normal());
      const std::span<float> row = std::span(values).subspan(offset);
      CHECK(first_beyond(row, bound) == length);
      for (const float fine : {bound, -bound, 0.0F, -0.0F, Limits::denorm_min(), -Limits::min()}) {
        row[random.next_u32() % length] = fine;
        CHECK(first_beyond(row, bound) == length);
      }
      for (const float bad :
           {Limits::quiet_NaN(), -Limits::quiet_NaN(), Limits::signaling_NaN(), Limits::infinity(),
            -Limits::infinity(), Limits::max(), above, -above})
        for (const std::size_t at :
             {std::size_t{0}, length / 2, length - 1, std::size_t{random.next_u32()} % length}) {
          const float kept = std::exchange(row[at], bad);
          CHECK(first_beyond(row, bound) == at);
          if (at + 1 < length) CHECK(first_beyond(row.subspan(at + 1), bound) == length - at - 1);
          row[at] = kept;
        }
    }
  CHECK(first_beyond({}, bound) == 0);
  const std::vector<float> small{0, -0.0F, 1};
  CHECK(first_beyond(small, 0) == 2);
}
