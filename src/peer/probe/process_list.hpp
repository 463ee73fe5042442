// Which process hosts which nodes of a network: each process says it in the all-gather at the
// start.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"

namespace gossamer::peer {

/// What one process knows of all. Pure.
class ProcessList {
 public:
  /// `hosted`: the nodes of this process, of `nodes` in all; ascending, not empty.
  ProcessList(std::vector<int> hosted, int nodes);

  /// The nodes of this process, as net::AllGather::contribution.
  std::string contribution() const;
  /// Adds the nodes of a partner; those that are known already change nothing. Error (lost_peer): a
  /// clause that says how the contribution makes no sense.
  Status merge(const std::string& contribution);

  /// The nodes of each process, ascending, by the lowest of them. Error (lost_peer): a node is in
  /// none.
  Result<std::vector<std::vector<int>>> processes() const;

 private:
  std::size_t nodes_;
  std::vector<std::vector<int>> processes_;  ///< this one first
};

}  // namespace gossamer::peer
