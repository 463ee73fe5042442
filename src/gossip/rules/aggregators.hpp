// Aggregators of rows that are given by their distances. They are rules of their own, and
// nearest_neighbour_mixing applies them to its means.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "gossip/rule.hpp"

namespace gossamer::gossip::rules {

struct WeiszfeldOptions {
  int iterations = 200;
  double smoothing = 1e-6;  ///< ν: a row that is nearer than that counts as in the same place
};

/// The weights of the rows, of sum 1, in their geometric median with the weights `alpha`: by at
/// most that number of steps of the smoothed Weiszfeld algorithm, as Vardi and Zhang amend it, from
/// their medoid. It ends earlier at a row that is the median, and when no weight changes by more
/// than 1e-12 of itself. alpha_j ≥ 0, and one of them is > 0.
std::vector<double> geometric_median_weights(const SquaredDistances& distances,
                                             std::span<const double> alpha,
                                             const WeiszfeldOptions& options);

/// The row with the lowest score: the sum of the squared distances to the m − left_out other rows
/// nearest to it, and to one at least. Of equal scores the lower index. Krum leaves out b + 2.
std::size_t krum_choice(const SquaredDistances& distances, std::size_t left_out);

}  // namespace gossamer::gossip::rules
