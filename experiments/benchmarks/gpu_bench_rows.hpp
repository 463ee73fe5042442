// Helpers of the row operations of bench_gpu: random rows, checks of results, repeated calls.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <stdexcept>
#include <vector>

#include "gpu/device_rows.hpp"
#include "gpu_bench.hpp"

namespace gossamer::bench {

using Rows = gpu::DeviceRows<float>;

/// `count` rows of `length` values, uniform in [0, 1). Each row has its own random stream.
inline Rows random_rows(gpu::Device& device, std::size_t count, std::size_t length) {
  Rows rows(device, count, length);
  for (std::size_t i = 0; i < count; ++i) {
    const gpu::RandomRequest<float> request{.seed = 1,
                                            .peer = static_cast<std::uint32_t>(i),
                                            .out = rows.row(i).data(),
                                            .length = length};
    device.uniforms(std::span(&request, 1));
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

/// The repeated call of a function of the device with one request.
template <class Request, class Call>
Work repeat(Request request, Call call) {
  return [request, call]() mutable { call(std::span<Request>(&request, 1)); };
}

/// The operations of codecs: encoding and decoding.
std::vector<Operation> coded_operations();

}  // namespace gossamer::bench
