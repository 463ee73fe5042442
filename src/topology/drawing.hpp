// Draws topologies: peers on a circle, edges as lines. SVG, without a library:
// circles, lines and text.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "topology/mixing_matrix.hpp"

namespace gossamer::topology {

/// One panel of a drawing.
struct Drawn {
  const MixingSchedule* schedule = nullptr;
  std::string title, subtitle;  ///< plain text
};

/// The most peers and lines that a panel can show legibly.
inline constexpr int kMostDrawnPeers = 512;
inline constexpr std::size_t kMostDrawnLines = 20000;
/// Rounds of a period (or of a random sequence) that are drawn, each in a colour of its own.
inline constexpr int kMostDrawnRounds = 6;

/// The panels beside each other, in rows. A line is an edge in both directions; an arrow
/// points to the out-neighbour. Where W varies in time, its first rounds are drawn in colours,
/// distinguished below the panel. The error (invalid) names a topology that is too large to draw.
Result<std::string> draw_svg(const std::vector<Drawn>& panels);

}  // namespace gossamer::topology
