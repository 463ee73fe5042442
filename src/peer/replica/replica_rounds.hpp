// The rounds from which the workers of a replica can resume together.
#pragma once

#include <vector>

#include "base/result.hpp"
#include "gossip/link.hpp"
#include "peer/replica/worker_place.hpp"
#include "train/split/worker_links.hpp"

namespace gossamer::peer {

/// Of `rounds`, at which this worker can start, ascending, those at which all `workers` workers of
/// its replica can. All of them call it, and learn the same, so that the networks of all parts
/// agree on the same round. Waits for the others. Errors: (invalid) there is none; (lost_peer) the
/// replica is not whole any more. Thread: that of the links that trains.
Result<std::vector<gossip::Round>> rounds_of_replica(const WorkerPlace& worker, int workers,
                                                     train::WorkerLinks<float>& links,
                                                     const std::vector<gossip::Round>& rounds);

}  // namespace gossamer::peer
