// The memory that this process can still take: that of the machine, or less in a container.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace gossamer::peer {

struct AvailableMemory {
  double bytes = 0;
  std::string limit =
      {};  ///< the control group that allows no more; empty: the machine has no more
};

/// The least of what the machine has available and of what is left of the limit of each control
/// group of this process (versions 1 and 2), from its own up to the topmost that it sees. The cache
/// of files that a group could drop counts as left. Nothing if the system does not tell. `root`: of
/// the file system, for tests.
std::optional<AvailableMemory> available_memory(const std::filesystem::path& root = "/");

}  // namespace gossamer::peer
