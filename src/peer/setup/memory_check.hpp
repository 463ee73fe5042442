// Whether the nodes of a process fit into the memory of its device.
#pragma once

#include <cstddef>

#include "base/result.hpp"
#include "peer/setup/setup.hpp"

namespace gossamer::peer {

/// Bytes of device memory that a node takes, with the workspace of its training.
std::size_t memory_of_node(const Setup& setup);

/// Checks that the rows and workspaces of `hosted` nodes, distributed over the GPUs of the device,
/// fit into its free memory. The error (invalid) says how much is needed, and how many nodes would
/// fit. Host memory is not checked.
Status check_memory(const Setup& setup, std::size_t hosted);

}  // namespace gossamer::peer
