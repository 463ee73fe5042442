// The range check of values from other peers: finite, and not beyond a bound.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace gossamer {

/// A float's bits without the sign. Their order is the order of magnitudes, with infinity and NaN
/// above all numbers.
inline constexpr std::uint32_t kMagnitudeBits = 0x7FFFFFFF;

/// Index of the first value that is not within [−largest, largest] (NaN never is); values.size()
/// where all are. `largest`: ≥ 0, finite. `values`: host memory. Any thread.
std::size_t first_beyond(std::span<const float> values, float largest);

}  // namespace gossamer
