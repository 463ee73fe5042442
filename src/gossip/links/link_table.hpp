// A table of link properties from a file: measured latencies or bandwidths between the regions of a
// wide-area network.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace gossamer::gossip {

/// Square: one number, 0 to 1e9, for each ordered pair of regions. Immutable.
class LinkTable {
 public:
  /// Reads n lines of n numbers, separated by blanks or commas, the k-th of line i being from
  /// region i to region k;
  /// '#' begins a comment. Errors (data) begin with `name`, the file's, and the line.
  static Result<LinkTable> parse(std::string_view text, const std::string& name);
  /// The numbers of `regions` regions, row by row; another number of them is a bug.
  LinkTable(int regions, std::vector<double> values);
  LinkTable() = default;  ///< of no region

  int regions() const { return regions_; }
  double at(int from, int to) const {
    return values_[static_cast<std::size_t>(from * regions_ + to)];
  }
  const std::vector<double>& values() const { return values_; }

 private:
  int regions_ = 0;
  std::vector<double> values_;  ///< row by row
};

}  // namespace gossamer::gossip
