#include "gossip/process/options.hpp"

namespace gossamer::gossip {

std::vector<ChannelSpec> channels_of(const std::vector<RowSpec>& rows, std::size_t length) {
  std::vector<ChannelSpec> channels;
  for (const RowSpec& row : rows) {
    channels.push_back({.length = row.length(length),
                        .mixed = row.mixed,
                        .as_difference = row.mixed_as_difference,
                        .row_stochastic = row.row_stochastic,
                        .shared = row.shared});
    // Not of x, on which the peers must agree, so that its rows of W sum to 1.
    if (channels.size() > 1) channels.back().conserves_sum = row.conserved_sum;
  }
  channels.push_back({.length = length});  // of gradients
  return channels;
}

}  // namespace gossamer::gossip
