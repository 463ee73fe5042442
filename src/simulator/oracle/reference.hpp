// The algorithms' rounds as the oracle sees them: which rows go into a mix, which come out, and
// what happens in between, from a peer's rows at both ends of a round and from what its trainer
// did. Written from the papers' formulas, in double.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/world/scenario.hpp"
#include "simulator/world/trace.hpp"

namespace gossamer::gossip::sim {

using Row = std::vector<double>;

/// A row's mix in one round.
struct MixForm {
  Channel channel = 0;
  Row said;  ///< what others read of it: in, or what the codec leaves of that
  Row in;    ///< what the peer sent and mixed; empty: its process ended before
  Row out;   ///< what came of it; empty: its process ended before
  double slack =
      0;  ///< values that were added and taken away again to know `out`: as large as this
};

/// The mixes of a round, and what is wrong with the rest of it: sentences without a subject.
struct RoundForm {
  std::vector<MixForm> mixes;
  std::vector<std::string> wrong;
};
RoundForm form_of(const Scenario& scenario, const RoundRecord& record);
/// What is wrong with a round's steps of push-sum, whose sum is row 1: gradients at x/w, steps from
/// the sum on, one after the other.
std::optional<std::string> wrong_push_sum_steps(const Scenario& scenario,
                                                const RoundRecord& record);

/// Half a unit in the last place of a float next to 1.
inline constexpr double kRounding = 0x1p-24;

}  // namespace gossamer::gossip::sim
