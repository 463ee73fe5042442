// Simple Base-(k+1): rounds of at most k neighbours after which every peer has the exact average,
// for any number of peers.
#include "topology/finite_time.hpp"

namespace gossamer::topology::kinds::simple_base {

TopologyKind descriptor() {
  TopologyKind kind = finite_time_kind(simple_base_graph);
  kind.name = "simple_base";
  kind.summary =
      "simple Base-(k+1) graph: the exact average after at most 2 log_(k+1) n + 2 rounds with at "
      "most k neighbours each, for any n";
  return kind;
}

}  // namespace gossamer::topology::kinds::simple_base
