// The spread of a random factor of mean 1, which varies things that are alike without changing
// their mean.
#pragma once

#include <cmath>

#include "base/philox.hpp"

namespace gossamer::gossip {

struct Spread {
  enum class Form {
    uniform,     ///< between 1 − width and 1 + width; width < 1
    log_normal,  ///< exp(width · z − width² / 2), z standard normal
  };
  Form form = Form::log_normal;
  double width = 0;  ///< 0: all are equal, and nothing is drawn

  double factor(RandomStream& random) const {
    if (width == 0) return 1;
    return form == Form::uniform ? 1 + width * (2 * random.next_double() - 1)
                                 : log_normal(random.next_normal());
  }
  /// No factor is larger, or smaller: a normal made of 53 random bits is within ±8.6.
  double largest() const { return form == Form::uniform ? 1 + width : log_normal(kFarthestNormal); }
  double smallest() const {
    return form == Form::uniform ? 1 - width : log_normal(-kFarthestNormal);
  }

 private:
  static constexpr double kFarthestNormal = 8.6;  // sqrt(2 · 53 · ln 2) = 8.57
  double log_normal(double z) const { return std::exp(width * z - width * width / 2); }
};

}  // namespace gossamer::gossip
