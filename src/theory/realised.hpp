// The spectral gap of a run's realised mixing matrices, with every deviation from the schedule in
// them, late rows included.
#pragma once

#include <optional>
#include <vector>

#include "base/result.hpp"
#include "theory/spaces.hpp"

namespace gossamer::theory {

/// In `round`, `peer` mixed with `from`'s row of round `used` instead of that round's; none:
/// without it.
struct Departure {
  int peer = 0;
  Round round = 0;
  int from = 0;
  std::optional<Round> used;
};

/// 1 − (factor by which a round brings peers together), of the W_t as they were realised over
/// rounds 0..rounds−1: what is missing leaves its weight with the peer that missed it, and a row of
/// another round is that round's, so that the state is all rows still to be used (a delay-augmented
/// matrix). Generic rows are taken through the product, less their mean and scaled to 1 after every
/// round; the factor is the slope over the second half of the rounds, at equal phases of the
/// period. 1 where nothing is left. Without departures, and as rounds grow, it is
/// topology::spectral_gap. Errors (data): no rounds; departures in an order in which nothing could
/// have happened.
Result<double> realised_gap(const MixingSchedule& schedule, Round rounds,
                            const std::vector<Departure>& departures);

}  // namespace gossamer::theory
