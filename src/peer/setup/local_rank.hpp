// The local rank of a process, from the environment of its launcher or from the addresses of the
// network.
#pragma once

#include <functional>
#include <vector>

#include "net/options.hpp"
#include "peer/setup/device_choice.hpp"

namespace gossamer::peer {

/// The value of an environment variable; null if it is not set.
using Environment = std::function<const char*(const char* name)>;

/// The local rank of the process that hosts `ids` (not empty, ascending) in a network of `peers`
/// peers. Sources, in this order: the launcher's environment (LOCAL_RANK and LOCAL_WORLD_SIZE, and
/// the equivalents of SLURM, Open MPI and MPICH); net.peers, where the processes of this machine
/// are those with the same host. Otherwise the rank is computed as if all processes hosted the same
/// number of peers, and the number of processes on this machine is unknown.
LocalRank find_local_rank(const std::vector<int>& ids, int peers, const net::NetOptions& net,
                          const Environment& environment);

}  // namespace gossamer::peer
