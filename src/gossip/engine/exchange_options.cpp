#include "gossip/engine/exchange_options.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "gossip/node.hpp"

namespace gossamer::gossip {

const std::vector<std::string>& policy_names() {
  static const std::vector<std::string> names{"sync", "deadline", "stale", "async"};
  return names;
}

Policy policy_named(const std::string& name) {
  const auto found = std::ranges::find(policy_names(), name);
  GOSSAMER_CHECK(found != policy_names().end(), "there is no policy of this name");
  return static_cast<Policy>(found - policy_names().begin());
}

ExchangeOptions exchange_options(const std::vector<RowSpec>& rows, std::size_t length,
                                 ExchangeOptions chosen) {
  chosen.channels = channel_count(rows);
  chosen.row_lengths = row_lengths(rows, length);
  chosen.mixed = mixed_rows(rows);
  chosen.conserves_sum = rows_with_conserved_sum(rows);
  return chosen;
}

}  // namespace gossamer::gossip
