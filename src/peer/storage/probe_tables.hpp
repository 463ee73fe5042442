// The folder of tables in which `gossamer probe` writes what it has measured of a network, and
// which sim.probe names: latency.txt, jitter.txt and bandwidth.txt have a row for each sender and a
// column for each receiver, and nodes.txt has a line for each node.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "gossip/links/link_table.hpp"

namespace gossamer::peer {

/// A peer, or a server of a baseline.
struct ProbedNode {
  double step_ms = 0;      ///< mean duration of a local step; 0: it trains nothing
  double step_spread = 0;  ///< standard deviation of the logarithm of the duration
  double uplink_mbit_s = 0, downlink_mbit_s = 0;  ///< shared by all of its links; 0: no limit
};

struct ProbeTables {
  /// From a byte sent to its arrival; the largest additional delay of a chunk, uniform; bandwidth
  /// of the link alone, 0: no limit. All of as many regions as there are nodes.
  gossip::LinkTable latencies_ms, jitters_ms, bandwidths_mbit_s;
  std::vector<ProbedNode> nodes;
};

/// Bytes of a file of numbers for each pair of `nodes` nodes at most: 32 for each, and 64 KiB.
std::uint64_t most_table_bytes(int nodes);

/// Makes the folder and writes the tables; older ones are replaced. Errors (data) name the path.
Status write_probe_tables(const std::filesystem::path& folder, const ProbeTables& tables);

/// The lines of nodes.txt, of `nodes` nodes. Errors (data) begin with `name`, the file's, and the
/// line.
Result<std::vector<ProbedNode>> parse_probed_nodes(std::string_view text, const std::string& name,
                                                   int nodes);

/// Of a network of `nodes` nodes. Errors (data) name the file and, where there is one, the line.
Result<ProbeTables> read_probe_tables(const std::filesystem::path& folder, int nodes);

}  // namespace gossamer::peer
