// Simple Base-(k+1): rounds of at most k neighbours after which every peer has the exact average,
// for any number of peers.
#include "topology/finite_time.hpp"

namespace gossamer::topology::kinds {

TopologyKind simple_base() {
  TopologyKind kind = finite_time_kind(simple_base_graph);
  kind.name = "simple_base";
  kind.summary =
      "simple Base-(k+1) graph: exact average in at most 2 log_(k+1) n + 2 rounds of k neighbours "
      "or fewer, any n";
  return kind;
}

}  // namespace gossamer::topology::kinds
