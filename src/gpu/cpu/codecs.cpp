// bf16, int8 and signs.
#include "gpu/cpu/codecs.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace gossamer::gpu {
namespace {

/// values[i] ← value(i), or, to add, values[i] + value(i).
template <class Value>
void put(float* values, std::size_t length, bool add, Value value) {
  if (add)
    for (std::size_t i = 0; i < length; ++i) values[i] += value(i);
  else
    for (std::size_t i = 0; i < length; ++i) values[i] = value(i);
}

/// Σ |x| over a block of signs in double: lane t of 256 adds values 4t to 4t + 3 as (0 + 1) + (2 +
/// 3), and the lanes are added as a tree. Values past the block's end count as 0.
double sum_of_magnitudes(const float* values, std::size_t length) {
  constexpr std::size_t kLanes = kSignBlock / 4;
  double magnitudes[kSignBlock] = {}, lanes[kLanes];
  for (std::size_t i = 0; i < length; ++i)
    magnitudes[i] = static_cast<double>(std::fabs(values[i]));
  for (std::size_t t = 0; t < kLanes; ++t) {
    const double* own = magnitudes + 4 * t;
    lanes[t] = (own[0] + own[1]) + (own[2] + own[3]);
  }
  for (std::size_t half = kLanes / 2; half > 0; half /= 2)
    for (std::size_t t = 0; t < half; ++t) lanes[t] += lanes[t + half];
  return lanes[0];
}

}  // namespace

void run(const EncodeBf16Request& r) {
  for (std::size_t i = 0; i < r.length; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(r.values[i]);
    const bool nan = (bits & 0x7FFFFFFF) > 0x7F800000;
    const std::uint32_t rounded =
        bits + 0x7FFF + ((bits >> 16) & 1);  // a carry out of the mantissa raises the exponent
    r.coded[i] = static_cast<std::uint16_t>(nan ? (bits >> 16) | 0x40 : rounded >> 16);
  }
}

void run(const DecodeBf16Request& r) {
  put(r.values, r.length, r.add, [&](std::size_t i) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(r.coded[i]) << 16);
  });
}

void run(const EncodeInt8Request& r) {
  for (std::size_t begin = 0, block = 0; begin < r.length; begin += kInt8Block, ++block) {
    const std::size_t end = std::min(r.length, begin + kInt8Block);
    // As bits, which order like the magnitudes: infinity and NaN are above all numbers.
    std::uint32_t largest = 0;
    for (std::size_t i = begin; i < end; ++i)
      largest = std::max(largest, std::bit_cast<std::uint32_t>(r.values[i]) & 0x7FFFFFFF);
    const bool finite = largest < 0x7F800000;
    const float scale =
        finite ? std::bit_cast<float>(largest) / 127.0F : std::numeric_limits<float>::quiet_NaN();
    r.scales[block] = scale;
    if (!(scale > 0)) {
      std::fill(r.coded + begin, r.coded + end, std::int8_t{0});
      continue;
    }
    for (std::size_t i = begin; i < end; ++i) {
      // A denormal scale has lost bits, so the quotient may exceed 127.
      const float quotient = std::clamp(std::nearbyint(r.values[i] / scale), -127.0F, 127.0F);
      r.coded[i] = static_cast<std::int8_t>(static_cast<std::int32_t>(quotient));
    }
  }
}

void run(const DecodeInt8Request& r) {
  put(r.values, r.length, r.add,
      [&](std::size_t i) { return r.scales[i / kInt8Block] * static_cast<float>(r.coded[i]); });
}

void run(const EncodeSignsRequest& r) {
  for (std::size_t word = 0; word < sign_words(r.length); ++word) {
    std::uint32_t bits = 0;
    const std::size_t begin = word * 32, count = std::min<std::size_t>(32, r.length - begin);
    for (std::size_t i = 0; i < count; ++i) bits |= (r.values[begin + i] < 0 ? 1U : 0U) << i;
    r.bits[word] = bits;
  }
  for (std::size_t block = 0; block < sign_blocks(r.length); ++block) {
    const std::size_t begin = block * kSignBlock, count = std::min(kSignBlock, r.length - begin);
    r.scales[block] =
        static_cast<float>(sum_of_magnitudes(r.values + begin, count) / static_cast<double>(count));
  }
}

void run(const DecodeSignsRequest& r) {
  put(r.values, r.length, r.add, [&](std::size_t i) {
    const std::uint32_t sign = r.bits[i / 32] >> (i % 32) & 1;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(r.scales[i / kSignBlock]) ^ sign
                                                                                             << 31);
  });
}

}  // namespace gossamer::gpu
