// Random numbers from which the generator makes a scenario.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "base/philox.hpp"

namespace gossamer::simulator {

/// Random numbers of a scenario, rounded to three digits so that its text is short and exact.
class Draws {
 public:
  explicit Draws(RandomStream& random) : random_(random) {}
  int whole(int least, int most) {
    return least + static_cast<int>(random_.below(static_cast<std::uint32_t>(most - least + 1)));
  }
  bool chance(double probability) { return random_.next_double() < probability; }
  double real(double least, double most) {
    return std::round((least + (most - least) * random_.next_double()) * 1e3) / 1e3;
  }
  /// Uniform in the logarithm.
  double wide(double least, double most) {
    return std::round(std::exp(std::log(least) +
                               (std::log(most) - std::log(least)) * random_.next_double()) *
                      1e3) /
           1e3;
  }
  template <class Item>
  const Item& one_of(const std::vector<Item>& items) {
    return items[random_.below(static_cast<std::uint32_t>(items.size()))];
  }

 private:
  RandomStream& random_;
};

}  // namespace gossamer::simulator
