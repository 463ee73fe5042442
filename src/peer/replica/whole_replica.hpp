// The model of a replica whose parts are in several processes, put together.
#pragma once

#include <span>

#include "base/result.hpp"
#include "peer/config/config.hpp"
#include "peer/replica/replica_links.hpp"
#include "peer/replica/worker_place.hpp"
#include "peer/setup/setup.hpp"

namespace gossamer::peer {

/// Worker 0 of the replica receives the parts of the others, and writes final-<replica>.safetensors
/// into the run folder of `config`, the configuration of the whole run; the others send theirs.
/// `setup`: of this worker; `row`: its final parameters. Errors: (data) the file cannot be written;
/// (lost_peer) a worker is gone.
Status collect_replica(const Setup& setup, const Config& config, const WorkerPlace& worker,
                       ReplicaLinks& links, std::span<const float> row);

}  // namespace gossamer::peer
