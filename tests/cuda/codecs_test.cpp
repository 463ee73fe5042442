// bf16 and int8 on a GPU: the bits of the CPU's.
#include <bit>
#include <limits>

#include "tests/cuda/test_util.hpp"

using namespace gossamer;
using namespace gossamer::gpu;

namespace {

/// Normal values of every size, and among them what is special.
std::vector<float> floats(std::size_t length, bool finite) {
  auto values = normal<float>(length, length);
  RandomStream random(1, kNoPeer, Purpose::test, length);
  for (float& value : values) value = std::ldexp(value, static_cast<int>(random.below(60)) - 30);
  const float special[] = {
      0.0F,        -0.0F,        std::numeric_limits<float>::denorm_min(), -1e-40F, 1.00390625F,
      1.01171875F, -1.00390625F, std::numeric_limits<float>::min(),        1e30F};
  const float worse[] = {
      std::numeric_limits<float>::max(),       std::numeric_limits<float>::infinity(),
      -std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(),
      std::bit_cast<float>(0x7F800001U),       std::bit_cast<float>(0xFF80FFFFU)};
  std::size_t at = 0;
  for (const float value : special)
    if (at < length) values[(at++ * 7) % length] = value;
  for (const float value : worse)
    if (!finite && at < length) values[(at++ * 7) % length] = value;
  return values;
}

}  // namespace

TEST_CASE("GPU: bf16 there and back, ties and NaN included") {
  GOSSAMER_GPU(gpu_device);
  CpuDevice cpu(1);
  for (const std::size_t offset : {0, 1}) {
    std::vector<Held<float>> values, back;
    std::vector<Held<std::uint16_t>> coded;
    std::vector<EncodeBf16Request> to;
    std::vector<DecodeBf16Request> from;
    for (const std::size_t length : kLengths) {
      values.emplace_back(*gpu_device, floats(length, false), offset);
      coded.emplace_back(*gpu_device, length, offset);
      back.emplace_back(*gpu_device, length, offset);
      to.push_back({values.back().get(), coded.back().get(), length});
      from.push_back({coded.back().get(), back.back().get(), length});
    }
    gpu_device->execute(to);
    gpu_device->execute(from);
    for (std::size_t i = 0; i < kLengths.size(); ++i) {
      CAPTURE(kLengths[i]);
      auto in = floats(kLengths[i], false);
      std::vector<std::uint16_t> expected(in.size());
      const EncodeBf16Request encode{in.data(), expected.data(), in.size()};
      cpu.execute(std::span(&encode, 1));
      CHECK(coded[i].values() == expected);
      const DecodeBf16Request decode{expected.data(), in.data(), in.size()};
      cpu.execute(std::span(&decode, 1));
      CHECK(same_bits(back[i].values(), in));
      CHECK(same_bits(values[i].values(), floats(kLengths[i], false)));
    }
  }
  gpu_device->execute(std::span<const EncodeBf16Request>());
  gpu_device->execute(std::span<const DecodeBf16Request>());
}

TEST_CASE("GPU: every upper half of a float comes back from bf16") {
  GOSSAMER_GPU(gpu_device);
  std::vector<std::uint16_t> all(1 << 16);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  const Held<std::uint16_t> coded(*gpu_device, all);
  const Held<float> values(*gpu_device, all.size());
  const DecodeBf16Request request{coded.get(), values.get(), all.size()};
  gpu_device->execute(std::span(&request, 1));
  const auto wide = values.values();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(wide[i]);
    const bool signalling =
        std::isnan(wide[i]) && (bits & 0x400000) == 0;  // a GPU may make it a quiet one
    CHECK((bits >> 16 == i || (signalling && (bits | 0x400000) >> 16 == (i | 0x40))));
  }
}

TEST_CASE("GPU: int8 blocks there and back") {
  GOSSAMER_GPU(gpu_device);
  CpuDevice cpu(1);
  for (const std::size_t offset : {0, 1}) {
    std::vector<Held<float>> values, back, scales;
    std::vector<Held<std::int8_t>> coded;
    std::vector<std::vector<float>> in;
    std::vector<EncodeInt8Request> to;
    std::vector<DecodeInt8Request> from;
    for (const std::size_t length : kLengths) {
      in.push_back(floats(length, true));
      if (length >
          2 * kInt8Block) {  // a block of zeros, one of denormals, and ties: 127 makes the scale 1
        std::fill_n(in.back().begin(), kInt8Block, 0.0F);
        for (std::uint32_t i = 0; i < kInt8Block; ++i)
          in.back()[kInt8Block + i] = std::bit_cast<float>(i % 190);
      }
      if (length >= 255) {
        in.back()[length - 1] = 127;
        for (std::size_t i = 1; i < 200 && i + 1 < (length - 1) % kInt8Block; ++i)
          in.back()[length - 1 - i] = static_cast<float>(i) / 2 - 60;
      }
      values.emplace_back(*gpu_device, in.back(), offset);
      coded.emplace_back(*gpu_device, length, offset);
      scales.emplace_back(*gpu_device, int8_blocks(length));
      back.emplace_back(*gpu_device, length, offset);
      to.push_back({values.back().get(), coded.back().get(), scales.back().get(), length});
      from.push_back({coded.back().get(), scales.back().get(), back.back().get(), length});
    }
    gpu_device->execute(to);
    gpu_device->execute(from);
    for (std::size_t i = 0; i < kLengths.size(); ++i) {
      CAPTURE(kLengths[i]);
      std::vector<std::int8_t> expected(kLengths[i]);
      std::vector<float> expected_scales(int8_blocks(kLengths[i]));
      const EncodeInt8Request encode{in[i].data(), expected.data(), expected_scales.data(),
                                     kLengths[i]};
      cpu.execute(std::span(&encode, 1));
      CHECK(coded[i].values() == expected);
      CHECK(same_bits(scales[i].values(), expected_scales));
      const DecodeInt8Request decode{expected.data(), expected_scales.data(), in[i].data(),
                                     kLengths[i]};
      cpu.execute(std::span(&decode, 1));
      CHECK(same_bits(back[i].values(), in[i]));
    }
  }
  gpu_device->execute(std::span<const EncodeInt8Request>());
  gpu_device->execute(std::span<const DecodeInt8Request>());
}
