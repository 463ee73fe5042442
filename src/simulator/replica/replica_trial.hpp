// A trial of replicas whose workers are in processes of their own: their networks, in which each
// worker mixes its part, run while replicas are lost, started again and join. The agreement on the
// step from which on a replica trains is the program's (peer/replica/step_agreement.hpp); networks
// are reduced to which worker waits for which, and what happens next is random.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gossamer::simulator {

struct ReplicaTrialReport {
  std::vector<std::string> violations;  ///< whole sentences, the first few
  std::uint64_t decisions = 0;  ///< on steps that two workers of a replica decided, and compared
  std::uint64_t returns = 0;    ///< replicas that trained again after they were started again
  std::uint64_t hash = 0;       ///< of what was trained when
};

/// The same for the same seed, on every machine. What is checked:
/// - The workers of a replica train the same steps, and after the first one leave none out.
/// - No worker waits for ever: all that were not lost do their last rounds.
/// Thread: any, one trial at a time.
ReplicaTrialReport try_replicas(std::uint64_t seed);

}  // namespace gossamer::simulator
