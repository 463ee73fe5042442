// The type of a set of rows that is only read.
#pragma once

#include <span>
#include <vector>

namespace gossamer::peer {

/// One row per node, in the order of the nodes, all of the same length. Does not own the rows.
using RowViews = std::vector<std::span<const float>>;

}  // namespace gossamer::peer
