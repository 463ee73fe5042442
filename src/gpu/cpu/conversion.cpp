#include "gpu/cpu/conversion.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace gossamer::gpu {

void to_bf16(const Bf16Request& r) {
  for (std::size_t i = 0; i < r.length; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(r.values[i]);
    const bool nan = (bits & 0x7FFFFFFF) > 0x7F800000;
    const std::uint32_t rounded = bits + 0x7FFF + ((bits >> 16) & 1);  // a carry out of the mantissa raises the exponent
    r.coded[i] = static_cast<std::uint16_t>(nan ? (bits >> 16) | 0x40 : rounded >> 16);
  }
}

void from_bf16(const Bf16Request& r) {
  for (std::size_t i = 0; i < r.length; ++i)
    r.values[i] = std::bit_cast<float>(static_cast<std::uint32_t>(r.coded[i]) << 16);
}

void to_int8(const Int8Request& r) {
  for (std::size_t begin = 0, block = 0; begin < r.length; begin += kInt8Block, ++block) {
    const std::size_t end = std::min(r.length, begin + kInt8Block);
    float largest = 0;
    for (std::size_t i = begin; i < end; ++i) largest = std::max(largest, std::fabs(r.values[i]));
    const float scale = largest / 127.0F;
    r.scales[block] = scale;
    for (std::size_t i = begin; i < end; ++i) {
      // A scale that has lost bits (a denormal) may lead past 127.
      const float quotient = scale > 0 ? std::nearbyint(r.values[i] / scale) : 0.0F;
      r.coded[i] = static_cast<std::int8_t>(std::clamp(quotient, -127.0F, 127.0F));
    }
  }
}

void from_int8(const Int8Request& r) {
  for (std::size_t i = 0; i < r.length; ++i) r.values[i] = r.scales[i / kInt8Block] * static_cast<float>(r.coded[i]);
}

}  // namespace gossamer::gpu
