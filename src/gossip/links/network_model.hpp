// The properties of each link of a simulated network: the same for all links, or by the regions of
// the two ends, times a random factor for each pair of nodes.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "gossip/links/link_table.hpp"
#include "gossip/links/simulated_link.hpp"
#include "gossip/spread.hpp"

namespace gossamer::gossip {

struct NetworkSpec {
  double latency_ms = 0, bandwidth_mbit_s = 0;     ///< of every link; 0: none, and without limit
  std::optional<LinkTable> latencies, bandwidths;  ///< instead of these, in the same units
  std::optional<LinkTable> jitters;                ///< instead of jitter_ms
  Spread latency_spread = {},
         bandwidth_spread = {};  ///< drawn once for each pair of nodes: alike in both directions
  double jitter_ms = 0;          ///< largest additional delay of a chunk
  int peers = 0, servers = 0;
  std::uint64_t seed = 0;
};

/// Immutable.
class NetworkModel {
 public:
  NetworkModel() = default;
  /// Tables are of at most as many regions as there are peers, or of as many as there are nodes.
  explicit NetworkModel(NetworkSpec spec) : spec_(std::move(spec)) {}

  /// The properties of the link from → to. Pure: keyed by (seed, from, to).
  LinkModel link(int from, int to) const;

  /// The region of a node, of `regions`: each node in its own if there are as many regions as
  /// nodes, else peers in contiguous blocks of sizes that differ by one at most, and servers
  /// likewise (a single server is in region 0).
  int region_of(int node, int regions) const;

  /// Bounds over all links: seconds, jitter included; bytes per second, 0: no link has a limit.
  double longest_latency() const;
  double least_bandwidth() const;
  /// Whether all links have the same properties at all times.
  bool is_even() const;

 private:
  NetworkSpec spec_;
};

}  // namespace gossamer::gossip
