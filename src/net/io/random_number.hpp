// Numbers that no other process draws: of sessions, and of processes.
#pragma once

#include <cstdint>

namespace gossamer::net {

/// 64 bits of the system's randomness; never 0. Thread: any.
std::uint64_t random_number();

}  // namespace gossamer::net
