// Makes inputs from inputs: deterministic, and without knowledge of what the program does with
// them. libFuzzer, which has that knowledge, searches further; this needs no other compiler.
#pragma once

#include "base/philox.hpp"
#include "tests/fuzz/target.hpp"

namespace gossamer::fuzz {

/// A changed copy of one of `corpus`, which is not empty: bytes flipped, set, removed, repeated or
/// taken from another input. At most kMostBytes.
Bytes mutated(const std::vector<Bytes>& corpus, RandomStream& random);

inline constexpr std::size_t kMostBytes = 1 << 16;

}  // namespace gossamer::fuzz
