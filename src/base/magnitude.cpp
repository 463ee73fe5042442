#include "base/magnitude.hpp"

#include <algorithm>
#include <bit>

namespace gossamer {

std::size_t first_beyond(std::span<const float> values, float largest) {
  const auto most = std::bit_cast<std::int32_t>(largest);
  const auto room =
      [most](
          float value) {  // negative where it is beyond: both are magnitudes, so nothing overflows
        return most -
               static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(value) & kMagnitudeBits);
      };
  constexpr std::size_t block =
      4096;  // no branch within: the loop is one of vectors, and as fast as memory
  for (std::size_t begin = 0; begin < values.size(); begin += block) {
    const std::span<const float> part =
        values.subspan(begin, std::min(block, values.size() - begin));
    std::int32_t signs = 0;
    for (const float value : part) signs |= room(value);
    if (signs >= 0) continue;
    const auto found = std::ranges::find_if(part, [&](float value) { return room(value) < 0; });
    return begin + static_cast<std::size_t>(found - part.begin());
  }
  return values.size();
}

}  // namespace gossamer
