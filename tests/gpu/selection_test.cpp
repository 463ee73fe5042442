// Top-k, scattered adds, samples and signs, on the CPU.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "gpu/cpu_device.hpp"
#include "gpu/fault_word.hpp"

using namespace gossamer;
using namespace gossamer::gpu;

namespace {

constexpr float kUnbounded = std::numeric_limits<float>::infinity(),
                kNan = std::numeric_limits<float>::quiet_NaN();

/// Values with many ties: multiples of 1/8.
std::vector<float> coarse(std::size_t length, std::uint64_t stream) {
  RandomStream random(5, kNoPeer, Purpose::test, stream);
  std::vector<float> values(length);
  for (float& value : values) value = static_cast<float>(std::round(8 * random.next_normal()) / 8);
  return values;
}

struct Chosen {
  std::vector<float> values;
  std::vector<std::uint32_t> indices;
};
Chosen top_k_of(const std::vector<float>& row, std::size_t count) {
  Chosen chosen{std::vector<float>(count), std::vector<std::uint32_t>(count)};
  const TopKRequest request{row.data(), row.size(), chosen.values.data(), chosen.indices.data(),
                            count};
  CpuDevice(1).execute(std::span(&request, 1));
  return chosen;
}

bool scatter_add(std::vector<float>& row, Chosen chosen) {
  CpuDevice device(1);
  const FaultWord fault(device);
  const ScatterAddRequest request{chosen.values.data(), chosen.indices.data(),
                                  chosen.values.size(), row.data(),
                                  row.size(),           fault.word()};
  device.execute(std::span(&request, 1));
  return fault.tag() == 0;
}

}  // namespace

TEST_CASE(
    "the largest values are those of a stable sort by magnitude, in ascending order of index") {
  for (const std::size_t length : {1, 2, 31, 1000, 5000})
    for (const std::size_t count : {std::size_t{1}, (length + 9) / 10, length / 2 + 1, length}) {
      CAPTURE(length);
      CAPTURE(count);
      const auto row = coarse(length, length);
      std::vector<std::uint32_t> order(length);
      std::iota(order.begin(), order.end(), 0U);
      std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        return std::fabs(row[a]) > std::fabs(row[b]);
      });
      order.resize(std::min(count, length));
      std::sort(order.begin(), order.end());
      const Chosen chosen = top_k_of(row, order.size());
      CHECK(chosen.indices == order);
      for (std::size_t i = 0; i < order.size(); ++i) CHECK(chosen.values[i] == row[order[i]]);
    }
}

TEST_CASE("values that are not finite are largest: NaN before infinity before numbers") {
  const std::vector<float> row{1, -kUnbounded, 3e38F, kNan, 0, kUnbounded};
  CHECK(top_k_of(row, 1).indices == std::vector<std::uint32_t>{3});
  CHECK(top_k_of(row, 2).indices == std::vector<std::uint32_t>{1, 3});
  CHECK(top_k_of(row, 4).indices == std::vector<std::uint32_t>{1, 2, 3, 5});
}

TEST_CASE("values are added at sound indices only, and nothing is written for others") {
  std::vector<float> row{1, 2, 3, 4};
  CHECK(scatter_add(row, {{10, 20}, {1, 3}}));
  CHECK(row == std::vector<float>{1, 12, 3, 24});
  const std::vector<float> before = row;
  for (const std::vector<std::uint32_t>& indices :
       {std::vector<std::uint32_t>{3, 1}, {1, 1}, {1, 4}, {0, 0xFFFFFFFF}, {0x80000000, 1}}) {
    CHECK_FALSE(scatter_add(row, {{10, 20}, indices}));
    CHECK(row == before);
  }
}

TEST_CASE("of the unsound requests that name a fault word, the first sets it") {
  CpuDevice device(1);
  const FaultWord fault(device);
  std::vector<float> row(4);
  const float chosen[] = {1, 2};
  const std::uint32_t sound[] = {0, 3}, unsound[] = {0, 4};
  ScatterAddRequest request{chosen, sound, 2, row.data(), row.size(), fault.word(), 10};
  for (const auto& [indices, tag] :
       {std::pair(sound, 0), {unsound, 11}, {sound, 11}, {unsound, 11}}) {
    request.indices = indices;
    device.execute(std::span(&request, 1));
    CHECK(fault.tag() == static_cast<std::uint64_t>(tag));
    ++request.tag;
  }
  request.fault = nullptr;
  device.execute(std::span(&request, 1));
  CHECK(row == std::vector<float>{2, 0, 0, 4});
}

TEST_CASE(
    "a sample has one value of every stratum, each as likely as the others, and comes back to its "
    "place") {
  constexpr std::size_t kLength = 103, kCount = 10, kDraws = 4000;
  std::vector<float> row(kLength), chosen(kCount);
  for (std::size_t i = 0; i < kLength; ++i) row[i] = static_cast<float>(i);
  std::vector<int> hits(kLength);
  CpuDevice device(1);
  for (std::uint64_t step = 0; step < kDraws; ++step) {
    const StratifiedSample sample{kCount, 7, 2, Purpose::codec, step};
    const SampleRequest take{row.data(), kLength, chosen.data(), sample};
    device.execute(std::span(&take, 1));
    for (std::size_t i = 0; i < kCount; ++i) {
      const auto index = static_cast<std::size_t>(chosen[i]);
      CHECK(index >= i * kLength / kCount);
      CHECK(index < (i + 1) * kLength / kCount);
      ++hits[index];
    }
    std::vector<float> back(kLength);
    const AddSampledRequest put{chosen.data(), back.data(), kLength, sample};
    device.execute(std::span(&put, 1));
    for (std::size_t i = 0; i < kLength; ++i) CHECK((back[i] == 0 || back[i] == row[i]));
    CHECK(std::accumulate(back.begin(), back.end(), 0.0F) ==
          std::accumulate(chosen.begin(), chosen.end(), 0.0F));
  }
  for (const int hit : hits)
    CHECK(std::abs(hit - static_cast<int>(kDraws) / 10) < 110);  // 400 or 364 ± 6 deviations
}

TEST_CASE("signs: the mean magnitude of each block, with each value's sign") {
  std::vector<float> row(kSignBlock + 3, 2.0F);
  row[0] = -6;
  row[5] = -0.0F;
  row[kSignBlock] = -1, row[kSignBlock + 1] = 0, row[kSignBlock + 2] = 5;
  std::vector<std::uint32_t> bits(sign_words(row.size()));
  std::vector<float> scales(sign_blocks(row.size())), back(row.size(), 10);
  const EncodeSignsRequest encode{row.data(), bits.data(), scales.data(), row.size()};
  DecodeSignsRequest decode{bits.data(), scales.data(), back.data(), row.size()};
  CpuDevice device(1);
  device.execute(std::span(&encode, 1));
  const float first = static_cast<float>((6.0 + 1022 * 2.0) / 1024);
  CHECK(scales == std::vector<float>{first, 2});
  CHECK(bits[0] == 1);
  CHECK(bits.back() == 1);
  device.execute(std::span(&decode, 1));
  CHECK(back[0] == -first);
  CHECK(back[5] == first);
  CHECK(back[kSignBlock] == -2);
  decode.add = true;
  device.execute(std::span(&decode, 1));
  CHECK(back[kSignBlock + 2] == 4);
  row[7] = kNan;
  device.execute(std::span(&encode, 1));
  CHECK_FALSE(std::isfinite(scales[0]));
  CHECK(scales[1] == 2);
}

TEST_CASE("int8: a block with a value that is not finite comes back as NaN, the others unchanged") {
  for (const float bad : {kUnbounded, -kUnbounded, kNan}) {
    std::vector<float> row(2 * kInt8Block, 127), scales(2), back(row.size());
    row[3] = bad;
    std::vector<std::int8_t> coded(row.size());
    const EncodeInt8Request encode{row.data(), coded.data(), scales.data(), row.size()};
    DecodeInt8Request decode{coded.data(), scales.data(), back.data(), row.size()};
    CpuDevice device(1);
    device.execute(std::span(&encode, 1));
    device.execute(std::span(&decode, 1));
    CHECK(std::isnan(back[0]));
    CHECK(std::isnan(back[3]));
    CHECK(back[kInt8Block] == 127);
    decode.add = true;
    device.execute(std::span(&decode, 1));
    CHECK(back[kInt8Block] == 254);
  }
}
