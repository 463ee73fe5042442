// Whether values may be computed with: finite, and not beyond a bound.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace gossamer {

/// A float's sign left out: the order of these bits is the order of magnitudes, with infinity and
/// NaN above all numbers.
inline constexpr std::uint32_t kMagnitudeBits = 0x7FFFFFFF;

/// Index of the first value that is not within [−largest, largest] (NaN never is); values.size()
/// where all are. `largest`: ≥ 0, finite. `values`: host memory. Any thread.
std::size_t first_beyond(std::span<const float> values, float largest);

}  // namespace gossamer
