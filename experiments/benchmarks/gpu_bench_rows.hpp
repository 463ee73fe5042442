// Helpers of the row operations of bench_gpu: random rows, checks of results, repeated calls.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <stdexcept>
#include <vector>

#include "base/philox.hpp"
#include "gpu/device_rows.hpp"
#include "gpu_bench.hpp"

namespace gossamer::bench {

using Rows = gpu::DeviceRows<float>;

/// Rows of uniform values in [0, 1): the same million over and over, another million for each row.
inline Rows random_rows(gpu::Device& device, std::size_t count, std::size_t length) {
  Rows rows(device, count, length);
  std::vector<float> values(std::min(length, std::size_t{1} << 20));
  for (std::size_t i = 0; i < count; ++i) {
    RandomStream random(1, static_cast<std::uint32_t>(i), Purpose::test);
    for (float& value : values) value = random.next_float();
    for (std::size_t begin = 0; begin < length; begin += values.size())
      device.upload(rows.row(i).data() + begin, values.data(),
                    std::min(values.size(), length - begin) * sizeof(float));
  }
  return rows;
}

/// Downloads the first, middle and last values of a row.
inline std::vector<float> sample(gpu::Device& device, std::span<const float> row) {
  constexpr std::size_t kWindow = 256;
  const std::size_t window = std::min(kWindow, row.size());
  std::vector<float> values(3 * window);
  const std::size_t starts[] = {0, (row.size() - window) / 2, row.size() - window};
  for (std::size_t i = 0; i < 3; ++i)
    device.download(values.data() + i * window, row.data() + starts[i], window * sizeof(float));
  return values;
}

inline void expect_close(const std::vector<float>& got, const std::vector<double>& expected,
                         const char* what) {
  for (std::size_t i = 0; i < got.size(); ++i)
    if (!(std::abs(static_cast<double>(got[i]) - expected[i]) <= 1e-5))
      throw std::runtime_error(
          fmt::format("{}: wrong result {}, expected {}", what, got[i], expected[i]));
}

/// An operation on `rows` random rows that moves `bytes` per value. `prepare` returns the repeated
/// call.
struct Operation {
  const char* name;
  std::size_t rows;
  double bytes;
  std::function<Work(gpu::Device&, const Rows&)> prepare;
};

/// The repeated execution of one request.
template <class Request>
Work repeat(gpu::Device& device, const Request& request) {
  return [&device, request] { device.execute(std::span(&request, 1)); };
}

/// The operations of codecs: encoding and decoding.
std::vector<Operation> coded_operations();

}  // namespace gossamer::bench
