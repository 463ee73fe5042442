// Top-k, scattered adds, samples, signs, and decoded values added to rows: the bits of the CPU's.
#include <bit>
#include <limits>

#include "gpu/fault_word.hpp"
#include "tests/cuda/test_util.hpp"

using namespace gossamer;
using namespace gossamer::gpu;

namespace {

/// Lengths of up to several pieces of a row.
const std::vector<std::size_t> kRows{1, 3, 255, 1023, 1024, 1025, 2500, 8192, 8193, 30'011};

/// Values with many ties, both zeros, and at the end values that are not finite.
std::vector<float> values(std::size_t length) {
  auto made = normal<float>(length, length);
  for (std::size_t i = 0; i < length; ++i)
    made[i] = i % 3 == 0 ? std::round(4 * made[i]) / 4 : made[i];
  if (length > 1000) {
    made[length - 1] = std::numeric_limits<float>::quiet_NaN();
    made[length / 2] = -std::numeric_limits<float>::infinity();
    made[5] = std::numeric_limits<float>::denorm_min();
  }
  return made;
}

std::vector<float> finite(std::size_t length) {
  auto made = values(length);
  for (float& value : made) value = std::isfinite(value) ? value : 0.5F;
  return made;
}

}  // namespace

TEST_CASE("GPU: the largest values, for many shares of a row, all in one call") {
  GOSSAMER_GPU(gpu_device);
  CpuDevice cpu(1);
  std::vector<Held<float>> rows, chosen;
  std::vector<Held<std::uint32_t>> indices;
  std::vector<TopKRequest> requests;
  for (const std::size_t length : kRows)
    for (const std::size_t count :
         {std::size_t{1}, (length + 99) / 100, (length + 2) / 3, length}) {
      rows.emplace_back(*gpu_device, values(length), requests.size() % 2);
      chosen.emplace_back(*gpu_device, count);
      indices.emplace_back(*gpu_device, count);
      requests.push_back(
          {rows.back().get(), length, chosen.back().get(), indices.back().get(), count});
    }
  gpu_device->execute(requests);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    CAPTURE(requests[i].length);
    CAPTURE(requests[i].count);
    const auto row = values(requests[i].length);
    std::vector<float> expected(requests[i].count);
    std::vector<std::uint32_t> expected_indices(requests[i].count);
    const TopKRequest request{row.data(), row.size(), expected.data(), expected_indices.data(),
                              requests[i].count};
    cpu.execute(std::span(&request, 1));
    CHECK(indices[i].values() == expected_indices);
    CHECK(same_bits(chosen[i].values(), expected));
  }
  gpu_device->execute(std::span<const TopKRequest>());
}

TEST_CASE("GPU: values are added at sound indices, and none if one index is unsound") {
  GOSSAMER_GPU(gpu_device);
  const std::vector<std::vector<std::uint32_t>> places{
      {0, 2, 999}, {0, 2, 1000}, {2, 1, 3}, {1, 1, 2}, {997, 998, 999}, {0, 1, 0xFFFFFFFF}, {}};
  const Held<float> chosen(*gpu_device, std::vector<float>{10, 20, 30});
  std::vector<Held<float>> rows;
  std::vector<Held<std::uint32_t>> indices;
  std::vector<std::unique_ptr<FaultWord>> faults;
  std::vector<ScatterAddRequest> requests;
  for (const auto& each : places) {
    rows.emplace_back(*gpu_device, normal<float>(1000, 1));
    indices.emplace_back(*gpu_device, each);
    faults.push_back(std::make_unique<FaultWord>(*gpu_device));
    requests.push_back({chosen.get(), indices.back().get(), each.size(), rows.back().get(), 1000,
                        faults.back()->word(), requests.size() + 1});
  }
  gpu_device->execute(requests);
  gpu_device->finish();
  for (std::size_t i = 0; i < places.size(); ++i) {
    CAPTURE(i);
    auto expected = normal<float>(1000, 1);
    const bool sound = i == 0 || i == 4 || i == 6;
    for (std::size_t k = 0; sound && k < places[i].size(); ++k)
      expected[places[i][k]] += 10 * static_cast<float>(k + 1);
    CHECK(faults[i]->tag() == (sound ? 0 : i + 1));
    CHECK(same_bits(rows[i].values(), expected));
  }
  for (ScatterAddRequest& request : requests) request.tag += 100;  // the first tag stays
  gpu_device->execute(requests);
  for (ScatterAddRequest& request : requests) request.fault = nullptr;
  gpu_device->execute(requests);
  gpu_device->finish();
  for (std::size_t i = 0; i < places.size(); ++i)
    CHECK((faults[i]->tag() == 0 || faults[i]->tag() == i + 1));
  gpu_device->execute(std::span<const ScatterAddRequest>());
}

TEST_CASE("GPU: every index of a long list is checked, and every value of it added") {
  GOSSAMER_GPU(gpu_device);
  constexpr std::size_t kCount = 1000, kLength = 4000;
  for (const std::size_t unsound : {kCount, std::size_t{256}, kCount - 1}) {  // kCount: none is
    CAPTURE(unsound);
    std::vector<std::uint32_t> places;
    for (std::uint32_t i = 0; i < kCount; ++i) places.push_back(4 * i + 1);
    if (unsound < kCount) places[unsound] = places[unsound - 1];
    const auto added = normal<float>(kCount, 2);
    const Held<float> chosen(*gpu_device, added), row(*gpu_device, normal<float>(kLength, 1));
    const Held<std::uint32_t> indices(*gpu_device, places);
    const FaultWord fault(*gpu_device);
    const ScatterAddRequest request{chosen.get(), indices.get(), kCount,     row.get(),
                                    kLength,      fault.word(),  unsound + 1};
    gpu_device->execute(std::span(&request, 1));
    gpu_device->finish();
    auto expected = normal<float>(kLength, 1);
    for (std::size_t i = 0; unsound == kCount && i < kCount; ++i) expected[places[i]] += added[i];
    CHECK(fault.tag() == (unsound == kCount ? 0 : unsound + 1));
    CHECK(same_bits(row.values(), expected));
  }
}

TEST_CASE("GPU: the largest values of a row with more pieces than a block has threads") {
  GOSSAMER_GPU(gpu_device);
  CpuDevice cpu(1);
  const auto row = values((std::size_t{1} << 21) + 9000);
  const std::size_t count = row.size() / 50;
  const Held<float> held(*gpu_device, row), chosen(*gpu_device, count);
  const Held<std::uint32_t> indices(*gpu_device, count);
  const TopKRequest request{held.get(), row.size(), chosen.get(), indices.get(), count};
  gpu_device->execute(std::span(&request, 1));
  std::vector<float> expected(count);
  std::vector<std::uint32_t> expected_indices(count);
  const TopKRequest on_cpu{row.data(), row.size(), expected.data(), expected_indices.data(), count};
  cpu.execute(std::span(&on_cpu, 1));
  CHECK(indices.values() == expected_indices);
  CHECK(same_bits(chosen.values(), expected));
}

TEST_CASE("GPU: samples are the CPU's, there and back") {
  GOSSAMER_GPU(gpu_device);
  CpuDevice cpu(1);
  for (const std::size_t length : kRows)
    for (const std::size_t count : {std::size_t{1}, (length + 9) / 10, length}) {
      CAPTURE(length);
      CAPTURE(count);
      const auto row = finite(length);
      const Held<float> in(*gpu_device, row), chosen(*gpu_device, count),
          out(*gpu_device, normal<float>(length, 2));
      const StratifiedSample sample{count, 0x1234'5678'9ABCULL, 6, Purpose::codec, 1ULL << 33};
      const SampleRequest take{in.get(), length, chosen.get(), sample};
      const AddSampledRequest put{chosen.get(), out.get(), length, sample};
      gpu_device->execute(std::span(&take, 1));
      gpu_device->execute(std::span(&put, 1));
      std::vector<float> from = row, expected(count), to = normal<float>(length, 2);
      const SampleRequest cpu_take{from.data(), length, expected.data(), sample};
      const AddSampledRequest cpu_put{expected.data(), to.data(), length, sample};
      cpu.execute(std::span(&cpu_take, 1));
      cpu.execute(std::span(&cpu_put, 1));
      CHECK(same_bits(chosen.values(), expected));
      CHECK(same_bits(out.values(), to));
    }
}

TEST_CASE("GPU: signs there and back") {
  GOSSAMER_GPU(gpu_device);
  CpuDevice cpu(1);
  for (const bool add : {false, true})
    for (const std::size_t length : kRows) {
      CAPTURE(length);
      const Held<float> in(*gpu_device, finite(length), 1),
          scales(*gpu_device, sign_blocks(length)), out(*gpu_device, normal<float>(length, 2));
      const Held<std::uint32_t> bits(*gpu_device, sign_words(length));
      const EncodeSignsRequest encode{in.get(), bits.get(), scales.get(), length};
      const DecodeSignsRequest decode{bits.get(), scales.get(), out.get(), length, add};
      gpu_device->execute(std::span(&encode, 1));
      gpu_device->execute(std::span(&decode, 1));
      auto row = finite(length), back = normal<float>(length, 2);
      std::vector<float> expected_scales(sign_blocks(length));
      std::vector<std::uint32_t> expected(sign_words(length));
      const EncodeSignsRequest cpu_encode{row.data(), expected.data(), expected_scales.data(),
                                          length};
      const DecodeSignsRequest cpu_decode{expected.data(), expected_scales.data(), back.data(),
                                          length, add};
      cpu.execute(std::span(&cpu_encode, 1));
      cpu.execute(std::span(&cpu_decode, 1));
      CHECK(bits.values() == expected);
      CHECK(same_bits(scales.values(), expected_scales));
      CHECK(same_bits(out.values(), back));
    }
}

TEST_CASE(
    "GPU: bf16 and int8 are added to what is there, and blocks that are not finite become NaN") {
  GOSSAMER_GPU(gpu_device);
  CpuDevice cpu(1);
  for (const auto& [offset, apart] :
       {std::pair(std::size_t{0}, false), {1, false}, {0, true}, {1, true}})
    for (const std::size_t length : kRows) {
      CAPTURE(length);
      const Held<float> in(*gpu_device, values(length), offset),
          halves_out(*gpu_device, normal<float>(length, 2), offset),
          bytes_out(*gpu_device, normal<float>(length, 2), offset),
          scales(*gpu_device, int8_blocks(length));
      // Codes may lie off alignment where values do not, and the reverse.
      const Held<std::uint16_t> halves(*gpu_device, length, apart ? 1 - offset : offset);
      const Held<std::int8_t> bytes(*gpu_device, length, apart ? 1 - offset : offset);
      const EncodeBf16Request to_halves{in.get(), halves.get(), length};
      const EncodeInt8Request to_bytes{in.get(), bytes.get(), scales.get(), length};
      const DecodeBf16Request from_halves{halves.get(), halves_out.get(), length, true};
      const DecodeInt8Request from_bytes{bytes.get(), scales.get(), bytes_out.get(), length, true};
      gpu_device->execute(std::span(&to_halves, 1));
      gpu_device->execute(std::span(&to_bytes, 1));
      gpu_device->execute(std::span(&from_halves, 1));
      gpu_device->execute(std::span(&from_bytes, 1));
      auto row = values(length), halves_back = normal<float>(length, 2), bytes_back = halves_back;
      std::vector<float> expected_scales(int8_blocks(length));
      std::vector<std::uint16_t> expected_halves(length);
      std::vector<std::int8_t> expected_bytes(length);
      const EncodeBf16Request cpu_to_halves{row.data(), expected_halves.data(), length};
      const EncodeInt8Request cpu_to_bytes{row.data(), expected_bytes.data(),
                                           expected_scales.data(), length};
      const DecodeBf16Request cpu_from_halves{expected_halves.data(), halves_back.data(), length,
                                              true};
      const DecodeInt8Request cpu_from_bytes{expected_bytes.data(), expected_scales.data(),
                                             bytes_back.data(), length, true};
      cpu.execute(std::span(&cpu_to_halves, 1));
      cpu.execute(std::span(&cpu_to_bytes, 1));
      cpu.execute(std::span(&cpu_from_halves, 1));
      cpu.execute(std::span(&cpu_from_bytes, 1));
      CHECK(bytes.values() == expected_bytes);
      CHECK(same_bits(scales.values(), expected_scales));
      const auto check = [](const std::vector<float>& got, const std::vector<float>& expected) {
        for (std::size_t i = 0; i < got.size(); ++i)
          CHECK(
              (std::bit_cast<std::uint32_t>(got[i]) == std::bit_cast<std::uint32_t>(expected[i]) ||
               (std::isnan(got[i]) && std::isnan(expected[i]))));
      };
      check(halves_out.values(), halves_back);
      check(bytes_out.values(), bytes_back);
    }
}
