// bf16 and int8, copies and fills, and copies between host and device, on the CPU.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "gpu/cpu_device.hpp"

using namespace gossamer;
using namespace gossamer::gpu;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> normal(std::size_t length, std::uint64_t stream, double deviation = 1) {
  RandomStream random(5, kNoPeer, Purpose::test, stream);
  std::vector<float> values(length);
  for (float& value : values) value = static_cast<float>(deviation * random.next_normal());
  return values;
}

std::vector<float> through_bf16(std::vector<float> values) {
  std::vector<std::uint16_t> coded(values.size());
  const EncodeBf16Request encode{values.data(), coded.data(), values.size()};
  const DecodeBf16Request decode{coded.data(), values.data(), values.size()};
  CpuDevice device(1);
  device.execute(std::span(&encode, 1));
  device.execute(std::span(&decode, 1));
  return values;
}

struct Int8Row {
  explicit Int8Row(std::vector<float> values_in)
      : values(std::move(values_in)), coded(values.size()), scales(int8_blocks(values.size())) {
    const EncodeInt8Request encode{values.data(), coded.data(), scales.data(), values.size()};
    const DecodeInt8Request decode{coded.data(), scales.data(), values.data(), values.size()};
    CpuDevice device(1);
    device.execute(std::span(&encode, 1));
    device.execute(std::span(&decode, 1));
  }
  std::vector<float> values;
  std::vector<std::int8_t> coded;
  std::vector<float> scales;
};

}  // namespace

TEST_CASE("bf16 keeps eight bits of mantissa, rounds ties to even, and keeps special values") {
  // 1 + 2^-8 lies halfway between 1 and 1 + 2^-7; 1 + 3·2^-8 between 1 + 2^-7 and 1 + 2^-6.
  CHECK(through_bf16({1.0F, 1 + 0x1p-8F, 1 + 3 * 0x1p-8F, 1 + 0x1p-8F + 0x1p-20F, -3.0F, 0.0F}) ==
        std::vector<float>{1.0F, 1.0F, 1 + 0x1p-6F, 1 + 0x1p-7F, -3.0F, 0.0F});
  CHECK(through_bf16({std::numeric_limits<float>::max(), -kInfinity}) ==
        std::vector<float>{kInfinity, -kInfinity});
  CHECK(std::isnan(through_bf16(
      {std::bit_cast<float>(0x7F800001U)})[0]));  // the bits that make it a NaN are cut off
  CHECK(std::signbit(through_bf16({-0.0F})[0]));
  const auto values = normal(1000, 1), rounded = through_bf16(values);
  for (std::size_t i = 0; i < values.size(); ++i)
    CHECK(std::fabs(rounded[i] - values[i]) <= std::fabs(values[i]) * 0x1p-8F);
}

TEST_CASE("int8: half a step off at most, each block by its own scale, the largest value exact") {
  std::vector<float> values = normal(700, 2);
  for (std::size_t i = kInt8Block; i < 2 * kInt8Block; ++i) values[i] *= 1000;
  const Int8Row row(values);
  REQUIRE(row.scales.size() == 3);
  for (std::size_t i = 0; i < values.size(); ++i)
    CHECK(std::fabs(row.values[i] - values[i]) <= row.scales[i / kInt8Block] * 0.5001F);
  CHECK(row.scales[1] > 100 * row.scales[0]);
  CHECK(Int8Row({0, 0, 0}).values == std::vector<float>{0, 0, 0});
  CHECK(Int8Row({-127, 64, 0.5F, 1.5F}).coded ==
        std::vector<std::int8_t>{-127, 64, 0, 2});       // ties to even
  CHECK(Int8Row({-1e-44F, 1e-45F}).values.size() == 2);  // a scale below the smallest float
  CHECK(Int8Row({}).scales.empty());
}

TEST_CASE_TEMPLATE("copy and fill", Real, float, double) {
  std::vector<Real> a(100, 1), b(100, 2), c(100, 3);
  const CopyRequest<Real> copies[] = {{a.data(), b.data(), 60}, {a.data(), c.data() + 1, 0}};
  const FillRequest<Real> fill{Real(0.5), c.data() + 10, 5};
  BasicCpuDevice<Real> device(2);
  device.execute(copies);
  device.execute(std::span(&fill, 1));
  CHECK(b[59] == 1);
  CHECK(b[60] == 2);
  CHECK(c[9] == 3);
  CHECK(c[10] == Real(0.5));
  CHECK(c[14] == Real(0.5));
  CHECK(c[15] == 3);
}

TEST_CASE("copies between host and device report when they are done") {
  CpuDevice device(1);
  auto* host = static_cast<float*>(device.allocate_host(4 * sizeof(float)));
  auto* memory = static_cast<float*>(device.allocate(4 * sizeof(float)));
  int reports = 0;
  host[2] = 7;
  device.begin_upload(memory, host, 4 * sizeof(float),
                      [&](const Status& copied) { reports += copied.ok(); });
  device.begin_download(host, memory + 2, sizeof(float),
                        [&](const Status& copied) { reports += copied.ok(); });
  device.finish();
  CHECK(reports == 2);
  CHECK(host[0] == 7);
  device.release(memory);
  device.release_host(host);
}
