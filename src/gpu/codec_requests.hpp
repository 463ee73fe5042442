// Requests that encode rows in fewer bytes, select a few of their values, and decode them, with the
// formats, which are the same on every device. BasicDevice::execute (gpu/device.hpp) serves them;
// gpu/row_requests.hpp explains visit_memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/philox.hpp"

namespace gossamer::gpu {

/// float → bf16: the upper half of a float's bits, rounded to nearest, ties to even. NaN stays NaN.
struct EncodeBf16Request {
  const float* values = nullptr;
  std::uint16_t* coded = nullptr;  ///< out: [length]
  std::size_t length = 0;

  void visit_memory(auto&& memory) const { memory.writes(coded).reads(values); }
};
/// bf16 → float, exact.
struct DecodeBf16Request {
  const std::uint16_t* coded = nullptr;  ///< [length]
  float* values = nullptr;               ///< out
  std::size_t length = 0;
  bool add = false;  ///< add to `values` instead of replacing them

  void visit_memory(auto&& memory) const { memory.writes(values).reads(coded); }
};

/// Values that share a scale in the int8 format; the last block of a row may be shorter.
inline constexpr std::size_t kInt8Block = 256;
constexpr std::size_t int8_blocks(std::size_t length) {
  return (length + kInt8Block - 1) / kInt8Block;
}

/// float → int8 with one scale per block: scale = max |x| / 127, q = round(x / scale), ties to
/// even. A block of zeros has scale 0. A block with a value that is not finite has scale NaN.
struct EncodeInt8Request {
  const float* values = nullptr;
  std::int8_t* coded = nullptr;  ///< out: [length]
  float* scales = nullptr;       ///< out: [int8_blocks(length)]
  std::size_t length = 0;

  void visit_memory(auto&& memory) const { memory.writes(coded, scales).reads(values); }
};
/// int8 → float: x' = scale · q. A block whose scale is NaN becomes NaN.
struct DecodeInt8Request {
  const std::int8_t* coded = nullptr;  ///< [length]
  const float* scales = nullptr;       ///< [int8_blocks(length)]
  float* values = nullptr;             ///< out
  std::size_t length = 0;
  bool add = false;  ///< add to `values` instead of replacing them

  void visit_memory(auto&& memory) const { memory.writes(values).reads(coded, scales); }
};

/// Values that share a scale in the sign format; the last block of a row may be shorter.
inline constexpr std::size_t kSignBlock = 1024;
constexpr std::size_t sign_blocks(std::size_t length) {
  return (length + kSignBlock - 1) / kSignBlock;
}
constexpr std::size_t sign_words(std::size_t length) { return (length + 31) / 32; }

/// float → one bit per value, 1 where x < 0, and one scale per block: scale = Σ |x| / (values of
/// the block), summed in double in a fixed order. A block with a value that is not finite has a
/// scale that is not finite.
struct EncodeSignsRequest {
  const float* values = nullptr;
  std::uint32_t* bits = nullptr;  ///< out: [sign_words(length)], value i at bit i % 32 of word
                                  ///< i / 32; bits past the end are 0
  float* scales = nullptr;        ///< out: [sign_blocks(length)]
  std::size_t length = 0;

  void visit_memory(auto&& memory) const { memory.writes(bits, scales).reads(values); }
};
/// Signs → float: x' = ±scale. No value is finite in a block whose scale is not finite.
struct DecodeSignsRequest {
  const std::uint32_t* bits = nullptr;  ///< [sign_words(length)]
  const float* scales = nullptr;        ///< [sign_blocks(length)]
  float* values = nullptr;              ///< out
  std::size_t length = 0;
  bool add = false;  ///< add to `values` instead of replacing them

  void visit_memory(auto&& memory) const { memory.writes(values).reads(bits, scales); }
};

/// The `count` values of largest magnitude with their indices, in ascending order of index. Exact:
/// of equal magnitudes the lower index is taken first; infinity is larger than any number, and NaN
/// is larger than infinity.
struct TopKRequest {
  const float* values = nullptr;
  std::size_t length = 0;            ///< below 2³²
  float* chosen = nullptr;           ///< out: [count]
  std::uint32_t* indices = nullptr;  ///< out: [count]
  std::size_t count = 0;             ///< 1 … length

  void visit_memory(auto&& memory) const { memory.writes(chosen, indices).reads(values); }
};

/// values[indices[i]] ← values[indices[i]] + chosen[i], if the indices ascend strictly and lie
/// below `length`. Otherwise `values` stay unchanged, and `fault`, if it is 0, becomes `tag`: when
/// Memory::finish() has returned, or before.
struct ScatterAddRequest {
  const float* chosen = nullptr;           ///< [count]
  const std::uint32_t* indices = nullptr;  ///< [count]
  std::size_t count = 0;
  float* values = nullptr;
  std::size_t length = 0;
  std::uint64_t* fault = nullptr;  ///< a FaultWord's (host memory), of no other request of the
                                   ///< call; null: the fault is not reported
  std::uint64_t tag = 1;           ///< not 0; identifies the request

  void visit_memory(auto&& memory) const { memory.writes(values).reads(chosen, indices); }
};

/// Random choice of one value from each of `count` strata of a row: stratum i is [i · length /
/// count, (i + 1) · length / count), rounded down, and number i of the stream (seed, peer, purpose,
/// step), u, chooses its value u · size / 2³², rounded down.
struct StratifiedSample {
  std::size_t count = 0;  ///< 1 … length
  std::uint64_t seed = 0;
  std::uint32_t peer = 0;
  Purpose purpose = Purpose::test;
  std::uint64_t step = 0;
};

/// The index that number u chooses in stratum i. Any device.
constexpr std::size_t sampled_index(std::size_t i, std::uint32_t u, std::size_t length,
                                    std::size_t count) {
  const std::uint64_t begin = std::uint64_t{i} * length / count,
                      end = (std::uint64_t{i} + 1) * length / count;
  return begin + (std::uint64_t{u} * (end - begin) >> 32);
}

/// chosen[i] ← the i-th sampled value.
struct SampleRequest {
  const float* values = nullptr;
  std::size_t length = 0;   ///< below 2³²
  float* chosen = nullptr;  ///< out: [sample.count]
  StratifiedSample sample = {};

  void visit_memory(auto&& memory) const { memory.writes(chosen).reads(values); }
};
/// The i-th sampled value ← itself + chosen[i].
struct AddSampledRequest {
  const float* chosen = nullptr;  ///< [sample.count]
  float* values = nullptr;
  std::size_t length = 0;  ///< below 2³²
  StratifiedSample sample = {};

  void visit_memory(auto&& memory) const { memory.writes(values).reads(chosen); }
};

}  // namespace gossamer::gpu
