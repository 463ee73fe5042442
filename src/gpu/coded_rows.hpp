// Rows in fewer bytes, and as a few of their values: what is asked of the device (gpu/device.hpp),
// and the formats, which are the same on every one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/philox.hpp"

namespace gossamer::gpu {

/// Values that share a scale in the int8 format; the last block of a row may be shorter.
inline constexpr std::size_t kInt8Block = 256;
constexpr std::size_t int8_blocks(std::size_t length) {
  return (length + kInt8Block - 1) / kInt8Block;
}

/// float ↔ bf16: the upper half of a float's bits, rounded to the nearest, ties to even; NaN stays
/// NaN.
struct Bf16Request {
  float* values = nullptr;         ///< in of `to_bf16`, out of `from_bf16`
  std::uint16_t* coded = nullptr;  ///< the other way round
  std::size_t length = 0;
  bool add = false;  ///< `from_bf16` adds to what is there
};

/// float ↔ int8 with one scale a block: scale = max |x| / 127, q = round(x / scale), ties to even;
/// x' = scale · q. A block of zeros has scale 0; one with a value that is not finite comes back as
/// NaN.
struct Int8Request {
  float* values = nullptr;       ///< in of `to_int8`, out of `from_int8`
  std::int8_t* coded = nullptr;  ///< [length]
  float* scales = nullptr;       ///< [int8_blocks(length)]
  std::size_t length = 0;
  bool add = false;  ///< `from_int8` adds to what is there
};

/// Values that share a scale in the sign format; the last block of a row may be shorter.
inline constexpr std::size_t kSignBlock = 1024;
constexpr std::size_t sign_blocks(std::size_t length) {
  return (length + kSignBlock - 1) / kSignBlock;
}
constexpr std::size_t sign_words(std::size_t length) { return (length + 31) / 32; }

/// float ↔ one bit a value, 1 where x < 0, and one scale a block: scale = Σ |x| / (values of the
/// block), summed in double in a fixed order; x' = ±scale. A block with a value that is not finite
/// comes back as none that are.
struct SignRequest {
  float* values = nullptr;        ///< in of `to_signs`, out of `from_signs`
  std::uint32_t* bits = nullptr;  ///< [sign_words(length)], value i at bit i % 32 of word i / 32;
                                  ///< bits past the end are 0
  float* scales = nullptr;        ///< [sign_blocks(length)]
  std::size_t length = 0;
  bool add = false;  ///< `from_signs` adds to what is there
};

/// The `count` values of largest magnitude, with their indices, in ascending order of index. Exact:
/// of equal magnitudes the lower index is taken first; infinity is larger than any number, and NaN
/// larger than that.
struct LargestRequest {
  const float* values = nullptr;
  std::size_t length = 0;            ///< below 2³²
  float* chosen = nullptr;           ///< out: [count]
  std::uint32_t* indices = nullptr;  ///< out: [count]
  std::size_t count = 0;             ///< 1 … length
};

/// values[indices[i]] ← values[indices[i]] + chosen[i], if the indices are sound: if they ascend
/// strictly and lie below `length`. Else `values` stay as they are and `fault`, where it is 0,
/// becomes `tag`.
struct PlacedRequest {
  const float* chosen = nullptr;           ///< [count]
  const std::uint32_t* indices = nullptr;  ///< [count]
  std::size_t count = 0;
  float* values = nullptr;
  std::size_t length = 0;
  std::uint64_t* fault =
      nullptr;            ///< a FaultWord's, of no other request of the call; null: nobody is told
  std::uint64_t tag = 1;  ///< not 0: what tells this request from others
};

/// One value of each of `count` strata of a row, chosen at random: stratum i is [i · length /
/// count, (i + 1) · length / count), rounded down, and number i of the stream (seed, peer, purpose,
/// step), u, chooses its value u · size / 2³², rounded down.
struct SampledRequest {
  float* values = nullptr;  ///< in of `sample`, out of `add_sampled`
  std::size_t length = 0;   ///< below 2³²
  float* chosen = nullptr;  ///< [count] the other way round
  std::size_t count = 0;    ///< 1 … length
  std::uint64_t seed = 0;
  std::uint32_t peer = 0;
  Purpose purpose = Purpose::test;
  std::uint64_t step = 0;
};

/// The index that number u gives in stratum i. Any device.
constexpr std::size_t sampled_index(std::size_t i, std::uint32_t u, std::size_t length,
                                    std::size_t count) {
  const std::uint64_t begin = std::uint64_t{i} * length / count,
                      end = (std::uint64_t{i} + 1) * length / count;
  return begin + (std::uint64_t{u} * (end - begin) >> 32);
}

}  // namespace gossamer::gpu
