// Rows in fewer bytes, and keyed random numbers: the bits of the CPU's.
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
    std::vector<Bf16Request> to, from;
    for (const std::size_t length : kLengths) {
      values.emplace_back(*gpu_device, floats(length, false), offset);
      coded.emplace_back(*gpu_device, length, offset);
      back.emplace_back(*gpu_device, length, offset);
      to.push_back({values.back().get(), coded.back().get(), length});
      from.push_back({back.back().get(), coded.back().get(), length});
    }
    gpu_device->to_bf16(to);
    gpu_device->from_bf16(from);
    for (std::size_t i = 0; i < kLengths.size(); ++i) {
      CAPTURE(kLengths[i]);
      auto in = floats(kLengths[i], false);
      std::vector<std::uint16_t> expected(in.size());
      const Bf16Request request{in.data(), expected.data(), in.size()};
      cpu.to_bf16(std::span(&request, 1));
      CHECK(coded[i].values() == expected);
      cpu.from_bf16(std::span(&request, 1));
      CHECK(same_bits(back[i].values(), in));
      CHECK(same_bits(values[i].values(), floats(kLengths[i], false)));
    }
  }
  gpu_device->to_bf16({});
  gpu_device->from_bf16({});
}

TEST_CASE("GPU: every upper half of a float comes back from bf16") {
  GOSSAMER_GPU(gpu_device);
  std::vector<std::uint16_t> all(1 << 16);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  const Held<std::uint16_t> coded(*gpu_device, all);
  const Held<float> values(*gpu_device, all.size());
  const Bf16Request request{values.get(), coded.get(), all.size()};
  gpu_device->from_bf16(std::span(&request, 1));
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
    std::vector<Int8Request> to, from;
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
      from.push_back({back.back().get(), coded.back().get(), scales.back().get(), length});
    }
    gpu_device->to_int8(to);
    gpu_device->from_int8(from);
    for (std::size_t i = 0; i < kLengths.size(); ++i) {
      CAPTURE(kLengths[i]);
      std::vector<std::int8_t> expected(kLengths[i]);
      std::vector<float> expected_scales(int8_blocks(kLengths[i]));
      const Int8Request request{in[i].data(), expected.data(), expected_scales.data(), kLengths[i]};
      cpu.to_int8(std::span(&request, 1));
      CHECK(coded[i].values() == expected);
      CHECK(same_bits(scales[i].values(), expected_scales));
      cpu.from_int8(std::span(&request, 1));
      CHECK(same_bits(back[i].values(), in[i]));
    }
  }
  gpu_device->to_int8({});
  gpu_device->from_int8({});
}

TEST_CASE("GPU: random numbers are those of the CPU's stream, from any place in it") {
  GOSSAMER_GPU(gpu_device);
  constexpr std::uint64_t kSeed = 0x0123'4567'89AB'CDEFULL, kStep = 0x2A'0000'0001ULL;
  constexpr std::uint32_t kPeer = 77;
  std::vector<Held<std::uint32_t>> integers;
  std::vector<Held<float>> uniforms;
  std::vector<RandomRequest<std::uint32_t>> integer_requests;
  std::vector<RandomRequest<float>> uniform_requests;
  for (const std::size_t length : kLengths)
    for (const std::uint64_t first : {0ULL, 1ULL, 3ULL, 4ULL, 1002ULL}) {
      integers.emplace_back(*gpu_device, length, first % 2);
      uniforms.emplace_back(*gpu_device, length, first % 2);
      integer_requests.push_back(
          {kSeed, kPeer, Purpose::shuffle, kStep, first, integers.back().get(), length});
      uniform_requests.push_back(
          {kSeed + 1, kPeer, Purpose::data, kStep, first, uniforms.back().get(), length});
    }
  gpu_device->integers(integer_requests);
  gpu_device->uniforms(uniform_requests);
  for (std::size_t i = 0; i < integers.size(); ++i) {
    CAPTURE(integer_requests[i].length);
    CAPTURE(integer_requests[i].first);
    RandomStream integer_stream(kSeed, kPeer, Purpose::shuffle, kStep);
    RandomStream uniform_stream(kSeed + 1, kPeer, Purpose::data, kStep);
    for (std::uint64_t k = 0; k < integer_requests[i].first; ++k)
      integer_stream.next_u32(), uniform_stream.next_float();
    std::vector<std::uint32_t> expected;
    std::vector<float> expected_uniforms;
    for (std::size_t k = 0; k < integers[i].length(); ++k) {
      expected.push_back(integer_stream.next_u32());
      expected_uniforms.push_back(uniform_stream.next_float());
    }
    CHECK(integers[i].values() == expected);
    CHECK(same_bits(uniforms[i].values(), expected_uniforms));
  }
  gpu_device->integers({});
  gpu_device->uniforms({});
}

TEST_CASE("GPU: random numbers far out in a stream") {
  GOSSAMER_GPU(gpu_device);
  CpuDevice cpu(1);
  const std::uint64_t first = (1ULL << 33) + 5;
  const Held<std::uint32_t> out(*gpu_device, 100);
  std::vector<std::uint32_t> expected(100);
  RandomRequest<std::uint32_t> request{9, kNoPeer, Purpose::test, 0, first, out.get(), 100};
  gpu_device->integers(std::span(&request, 1));
  request.out = expected.data();
  cpu.integers(std::span(&request, 1));
  CHECK(out.values() == expected);
}
