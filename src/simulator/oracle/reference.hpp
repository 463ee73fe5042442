// The reference of the algorithms' rounds: which rows go into a mix, which come out, and what
// happens in between, derived from a peer's rows at both ends of a round and from what its trainer
// did. Written from the papers' formulas, in double.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/scenario/scenario.hpp"
#include "simulator/world/trace.hpp"

namespace gossamer::simulator {

using Row = std::vector<double>;

/// A row's mix in one round.
struct ReferenceMix {
  Channel channel = 0;
  Row sent;          ///< what neighbours receive of it: `in`, or what the codec leaves of it
  Row in;            ///< what the peer sent and mixed; empty: its process ended before
  Row out;           ///< the result; empty: its process ended before
  double slack = 0;  ///< the magnitude of values that were added and subtracted to derive `out`
};

/// The mixes of a round, and what is wrong with the rest of it: sentences without a subject.
struct ReferenceRound {
  std::vector<ReferenceMix> mixes;
  std::vector<std::string> errors;
};
ReferenceRound reference_of(const Scenario& scenario, const RoundRecord& record);
/// What is wrong with a round's steps of push-sum, whose sum is row 1: gradients are taken at x/w,
/// and steps start from the sum, one after the other.
std::optional<std::string> wrong_push_sum_steps(const Scenario& scenario,
                                                const RoundRecord& record);

/// Rows of asynchronous push-sum: (x, w); the sum of all that the peer ever gave; and, for each
/// neighbour in the order of ids, its sum that was used last.
inline constexpr std::size_t kAsyncPushSumSum = 1, kAsyncPushSumGiven = 3, kAsyncPushSumUsed = 4;

/// Half a unit in the last place of a float next to 1.
inline constexpr double kRounding = 0x1p-24;

}  // namespace gossamer::simulator
