// Base-(k+1): as simple_base, in fewer rounds where n has small factors: parts average themselves,
// then one another.
#include "topology/finite_time.hpp"

namespace gossamer::topology::kinds::base {

TopologyKind descriptor() {
  TopologyKind kind = finite_time_kind(base_graph);
  kind.name = "base";
  kind.summary =
      "Base-(k+1) graph: the exact average after a period of rounds with at most k neighbours "
      "each, for any n";
  return kind;
}

}  // namespace gossamer::topology::kinds::base
