// Bytes that the peers of a process have sent over each of their links, for the page of a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "gossip/link.hpp"
#include "peer/storage/json.hpp"

namespace gossamer::peer {

/// Thread: the scheduler's.
class LinkTraffic {
 public:
  /// Of a node with more links, none are listed.
  static constexpr std::size_t kMostListed = 16;

  /// A link that passes everything on to `link`, and counts it. Both are destroyed before this
  /// object.
  std::unique_ptr<gossip::Link> counted(int from, int to, std::unique_ptr<gossip::Link> link);
  /// The same of a link that outlives the users of the returned one, which lives as long as this
  /// object.
  gossip::Link& counted(int from, int to, gossip::Link& link);

  /// [[to, bytes], …] of the node's links on which it has sent anything, ascending, with the
  /// headers of frames; null if there are none, or more than kMostListed.
  Json sent_by(int node) const;

 private:
  std::map<std::pair<int, int>, std::uint64_t> bytes_;  ///< by (from, to)
  std::vector<std::unique_ptr<gossip::Link>> links_;
};

}  // namespace gossamer::peer
