// The options of a run's exchange. The program, the simulator and the tests all make them here.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "gossip/algorithm.hpp"
#include "gossip/exchange/exchange.hpp"

namespace gossamer::gossip {

/// The names that policies have in a configuration, in the order of Policy.
const std::vector<std::string>& policy_names();
/// The policy with this name, which is one of policy_names().
Policy policy_named(const std::string& name);

/// `chosen` (policy, chunk size, codec, seed, rounds, …) completed by what follows from an
/// algorithm's rows: channels, the length of a row on each of them, and which rows keep their sum.
/// `length`: d, the number of parameters.
ExchangeOptions exchange_options(const std::vector<RowSpec>& rows, std::size_t length,
                                 ExchangeOptions chosen);

}  // namespace gossamer::gossip
