// Where a process stands among those of its machine, as launchers and addresses tell it.
#pragma once

#include <functional>
#include <vector>

#include "net/options.hpp"
#include "peer/runtime/device_choice.hpp"

namespace gossamer::peer {

/// An environment variable's value; null where there is none.
using Environment = std::function<const char*(const char* name)>;

/// Of the process that hosts peers `ids` (not empty, ascending) of a network of `peers`. What the
/// launcher says counts first (LOCAL_RANK and LOCAL_WORLD_SIZE, or SLURM's, Open MPI's, MPICH's
/// names for them), then the addresses of net.peers: processes with this one's host are on its
/// machine. Where neither tells, the number is the process's place in a network where all host as
/// many peers, and how many of them are on this machine is not known.
ProcessPlace process_place(const std::vector<int>& ids, int peers, const net::NetOptions& net,
                           const Environment& environment);

}  // namespace gossamer::peer
