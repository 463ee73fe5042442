// Bounds of virtual time that the oracle holds a run to.
#pragma once

#include <optional>

#include "simulator/scenario/scenario.hpp"

namespace gossamer::simulator {

/// Within which all peers have done all rounds: the rounds of the slowest, and the delays by
/// faults.
Time time_limit(const Scenario& scenario, const Protocol& protocol);
/// Within which no event is left: time_limit, and the timers and faults that come later.
Time run_limit(const Scenario& scenario, const Protocol& protocol);
/// Within which a restored link takes effect, and a joining peer is given rows, where no further
/// fault occurs.
Time settling_time(const Scenario& scenario, const Protocol& protocol);
/// For which a peer waits in a round once links take effect; none where peers do not catch up.
std::optional<Time> longest_wait(const Scenario& scenario, const Protocol& protocol);
/// When the last of the scenario's faults is over. A fault that lasts for good counts from its
/// begin.
Time faults_end(const Scenario& scenario);

}  // namespace gossamer::simulator
