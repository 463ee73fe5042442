// What each link of a simulated network has: the same for all, or by the regions that its ends are
// in, and about that what chance makes of each pair of nodes.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "gossip/links/link_table.hpp"
#include "gossip/links/simulated_link.hpp"
#include "gossip/links/spread.hpp"

namespace gossamer::gossip {

struct NetworkSpec {
  double latency_ms = 0, bandwidth_mbit_s = 0;     ///< of every link; 0: none, and without limit
  std::optional<LinkTable> latencies, bandwidths;  ///< instead of these, in the same units
  Spread latency_spread = {},
         bandwidth_spread = {};  ///< drawn once for each pair of nodes: alike in both directions
  double jitter_ms = 0;          ///< chunks come up to so much later
  int peers = 0, servers = 0;
  std::uint64_t seed = 0;
};

/// Immutable.
class NetworkModel {
 public:
  NetworkModel() = default;
  /// Tables are of at most as many regions as there are peers, or of as many as there are nodes.
  explicit NetworkModel(NetworkSpec spec) : spec_(std::move(spec)) {}

  /// What the link from → to has. Pure: keyed by (seed, from, to).
  LinkModel link(int from, int to) const;

  /// The region that a node is in, of `regions`: each node in its own where there are as many, else
  /// peers in contiguous blocks of equal size, within one, and servers likewise (a lone one is in
  /// region 0).
  int region_of(int node, int regions) const;

  /// No link is slower. Seconds, jitter included; bytes a second, 0: none has a limit.
  double longest_latency() const;
  double least_bandwidth() const;
  /// All links have the same, and at all times.
  bool is_even() const;

 private:
  NetworkSpec spec_;
};

}  // namespace gossamer::gossip
