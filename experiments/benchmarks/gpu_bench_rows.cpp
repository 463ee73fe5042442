// Operations on rows against the bytes that they must move: each input read once, each output written once. The bound is
// those bytes over the bandwidth of a copy of a row on the card (bytes read and written), measured in turn with it.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "gpu/device_rows.hpp"
#include "gpu_bench.hpp"

namespace gossamer::bench {
namespace {

using Rows = gpu::DeviceRows<float>;

/// Uniform in [0, 1), of a stream of its own for each row.
Rows random_rows(gpu::Device& device, std::size_t count, std::size_t length) {
  Rows rows(device, count, length);
  for (std::size_t i = 0; i < count; ++i) {
    const gpu::RandomRequest<float> request{.seed = 1, .peer = static_cast<std::uint32_t>(i), .out = rows.row(i).data(),
                                            .length = length};
    device.uniforms(std::span(&request, 1));
  }
  return rows;
}

/// A row's first, middle and last values, here.
std::vector<float> sample(gpu::Device& device, std::span<const float> row) {
  constexpr std::size_t kWindow = 256;
  const std::size_t window = std::min(kWindow, row.size());
  std::vector<float> values(3 * window);
  const std::size_t starts[] = {0, (row.size() - window) / 2, row.size() - window};
  for (std::size_t i = 0; i < 3; ++i)
    device.download(values.data() + i * window, row.data() + starts[i], window * sizeof(float));
  return values;
}

void expect_close(const std::vector<float>& got, const std::vector<double>& expected, const char* what) {
  for (std::size_t i = 0; i < got.size(); ++i)
    if (!(std::abs(static_cast<double>(got[i]) - expected[i]) <= 1e-5))
      throw std::runtime_error(fmt::format("{}: a wrong result, {} where {} was due", what, got[i], expected[i]));
}

/// Mixes into a poisoned row and looks at the result: a figure of a wrong result would be none.
void check_mix(gpu::Device& device, const gpu::MixRequest& request) {
  const gpu::FillRequest<float> poison{std::numeric_limits<float>::quiet_NaN(), request.out, request.length};
  device.fill(std::span(&poison, 1));
  device.mix(std::span(&request, 1));
  const std::vector<float> x = sample(device, {request.x, request.length});
  std::vector<double> expected(x.begin(), x.end());
  for (const gpu::MixSource& source : request.sources) {
    const std::vector<float> row = sample(device, {source.row, request.length});
    for (std::size_t i = 0; i < x.size(); ++i) expected[i] += source.weight * (static_cast<double>(row[i]) - x[i]);
  }
  expect_close(sample(device, {request.out, request.length}), expected, "mix");
}

constexpr gpu::UpdateRule kMomentum{.momentum = 0.9};
constexpr double kRate = 1e-3;

void check_update(gpu::Device& device, const gpu::UpdateJob<float>& job) {
  const auto x = sample(device, {job.parameters, job.length}), v = sample(device, {job.state[0], job.length});
  const auto g = sample(device, {job.gradient, job.length});
  device.update(kMomentum, std::span(&job, 1));
  std::vector<double> expected(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) expected[i] = x[i] - kRate * (kMomentum.momentum * v[i] + g[i]);
  expect_close(sample(device, {job.parameters, job.length}), expected, "update");
}

/// An operation on `rows` random rows that moves `bytes` a value; `prepare` makes what is repeated.
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

std::vector<Operation> operations() {
  using gpu::Device;
  const auto at = [](const Rows& rows, std::size_t i) { return rows.row(i).data(); };
  return {
      {"mix", 4, 16, [=](Device& d, const Rows& r) {
         auto sources = std::make_shared<std::vector<gpu::MixSource>>();
         *sources = {{at(r, 1), 1.0F / 3}, {at(r, 2), 1.0F / 3}};
         const gpu::MixRequest request{at(r, 0), at(r, 3), *sources, r.length()};
         check_mix(d, request);
         return Work([&d, request, sources] { d.mix(std::span(&request, 1)); });
       }},
      {"update", 3, 20, [=](Device& d, const Rows& r) {
         const gpu::UpdateJob<float> job{at(r, 0), {at(r, 1)}, at(r, 2), r.length(), kRate};
         check_update(d, job);
         return Work([&d, job] { d.update(kMomentum, std::span(&job, 1)); });
       }},
      {"copy_row", 2, 8, [=](Device& d, const Rows& r) {
         return repeat(gpu::CopyRequest<float>{at(r, 0), at(r, 1), r.length()}, [&d](auto q) { d.copy(q); });
       }},
      {"axpy", 2, 12, [=](Device& d, const Rows& r) {
         return repeat(gpu::AxpyRequest<float>{1e-6F, at(r, 0), at(r, 1), r.length()}, [&d](auto q) { d.axpy(q); });
       }},
      {"add_difference", 3, 16, [=](Device& d, const Rows& r) {
         return repeat(gpu::DifferenceRequest<float>{at(r, 0), at(r, 1), at(r, 2), r.length()},
                       [&d](auto q) { d.add_difference(q); });
       }},
      {"scale", 1, 8, [=](Device& d, const Rows& r) {
         return repeat(gpu::ScaleRequest<float>{1.0000001F, at(r, 0), r.length()}, [&d](auto q) { d.scale(q); });
       }},
      {"fill", 1, 4, [=](Device& d, const Rows& r) {
         return repeat(gpu::FillRequest<float>{0.7F, at(r, 0), r.length()}, [&d](auto q) { d.fill(q); });
       }},
      {"to_bf16", 2, 6, [=](Device& d, const Rows& r) {
         return repeat(gpu::Bf16Request{at(r, 0), reinterpret_cast<std::uint16_t*>(at(r, 1)), r.length()},
                       [&d](auto q) { d.to_bf16(q); });
       }},
      {"from_bf16", 2, 6, [=](Device& d, const Rows& r) {
         const gpu::Bf16Request request{at(r, 0), reinterpret_cast<std::uint16_t*>(at(r, 1)), r.length()};
         d.to_bf16(std::span(&request, 1));
         return repeat(request, [&d](auto q) { d.from_bf16(q); });
       }},
      {"to_int8", 3, 5 + 4.0 / gpu::kInt8Block, [=](Device& d, const Rows& r) {
         return repeat(gpu::Int8Request{at(r, 0), reinterpret_cast<std::int8_t*>(at(r, 1)), at(r, 2), r.length()},
                       [&d](auto q) { d.to_int8(q); });
       }},
      {"from_int8", 3, 5 + 4.0 / gpu::kInt8Block, [=](Device& d, const Rows& r) {
         const gpu::Int8Request request{at(r, 0), reinterpret_cast<std::int8_t*>(at(r, 1)), at(r, 2), r.length()};
         d.to_int8(std::span(&request, 1));
         return repeat(request, [&d](auto q) { d.from_int8(q); });
       }},
      {"integers", 1, 4, [=](Device& d, const Rows& r) {
         return repeat(gpu::RandomRequest<std::uint32_t>{.seed = 3, .out = reinterpret_cast<std::uint32_t*>(at(r, 0)),
                                                         .length = r.length()},
                       [&d](auto q) { d.integers(q); });
       }},
      {"uniforms", 1, 4, [=](Device& d, const Rows& r) {
         return repeat(gpu::RandomRequest<float>{.seed = 3, .out = at(r, 0), .length = r.length()},
                       [&d](auto q) { d.uniforms(q); });
       }},
      {"dot", 2, 8, [=](Device& d, const Rows& r) {
         return repeat(gpu::ReduceRequest<float>{at(r, 0), at(r, 1), r.length()}, [&d](auto q) { d.dot(q); });
       }},
      {"squared_norm", 1, 4, [=](Device& d, const Rows& r) {
         return repeat(gpu::ReduceRequest<float>{at(r, 0), at(r, 0), r.length()}, [&d](auto q) { d.dot(q); });
       }},
      {"squared_distance", 2, 8, [=](Device& d, const Rows& r) {
         return repeat(gpu::ReduceRequest<float>{at(r, 0), at(r, 1), r.length()},
                       [&d](auto q) { d.squared_distance(q); });
       }},
      {"all_finite", 1, 4, [=](Device& d, const Rows& r) {
         return repeat(gpu::FiniteRequest<float>{at(r, 0), r.length()}, [&d](auto q) { d.all_finite(q); });
       }},
      {"sketch", 1, 4, [=](Device& d, const Rows& r) {
         auto sketch = std::make_shared<std::vector<double>>(gpu::sketch_length(r.length()));
         const gpu::SketchRequest<float> request{at(r, 0), r.length(), 5, sketch->data()};
         return Work([&d, request, sketch] { d.sketch(std::span(&request, 1)); });
       }},
  };
}

/// The copy that a figure is held against, with rows of its own.
class CopyBound {
 public:
  CopyBound(gpu::Device& device, std::size_t length) : rows_(random_rows(device, 2, length)) { device.finish(); }

  Side side() {
    const std::size_t bytes = rows_.length() * sizeof(float);
    return {.work = [this, bytes] { copy_.copy(rows_.row(1).data(), rows_.row(0).data(), bytes); },
            .finish = [this] { copy_.finish(); },
            .bytes = 2.0 * static_cast<double>(bytes)};
  }

 private:
  Rows rows_;
  RawCopy copy_;
};

void print(const std::string& id, const PairedRates& rates) {
  Line("pairs").add("id", id).add("unit", std::string_view("bytes/s")).add("ours", rates.ours).add("theirs", rates.theirs)
      .print();
}

void measure(gpu::Device& device, const Scale& scale, const Operation& operation) {
  CopyBound bound(device, scale.row);
  const Rows rows = random_rows(device, operation.rows, scale.row);
  const Side ours{.work = operation.prepare(device, rows), .finish = [&device] { device.finish(); },
                  .bytes = operation.bytes * static_cast<double>(scale.row)};
  print(operation.name, measure_pairs(ours, bound.side(), scale));
}

/// A whole mixing round of 16 peers on a ring, back and forth between the two halves of their double buffers. Its least
/// bytes are each row read once and written once; `ring_issued` counts what the peers ask for: three rows read, one written.
void measure_ring(gpu::Device& device, const Scale& scale) {
  constexpr std::size_t kPeers = 16;
  CopyBound bound(device, scale.ring_row);
  const Rows buffers[] = {random_rows(device, kPeers, scale.ring_row), random_rows(device, kPeers, scale.ring_row)};
  std::vector<gpu::MixSource> sources[2];
  std::vector<gpu::MixRequest> requests[2];
  for (std::size_t half = 0; half < 2; ++half) {
    for (std::size_t p = 0; p < kPeers; ++p) {
      const std::size_t left = (p + kPeers - 1) % kPeers, right = (p + 1) % kPeers;
      for (const std::size_t neighbour : {std::min(left, right), std::max(left, right)})
        sources[half].push_back({buffers[half].row(neighbour).data(), 1.0F / 3});
    }
    for (std::size_t p = 0; p < kPeers; ++p)
      requests[half].push_back({buffers[half].row(p).data(), buffers[1 - half].row(p).data(),
                                std::span(sources[half]).subspan(2 * p, 2), scale.ring_row});
  }
  check_mix(device, requests[0].back());
  std::size_t round = 0;
  const Side ours{.work = [&] { device.mix(requests[round++ % 2]); }, .finish = [&device] { device.finish(); },
                  .bytes = 2.0 * kPeers * sizeof(float) * static_cast<double>(scale.ring_row)};
  PairedRates rates = measure_pairs(ours, bound.side(), scale);
  print("ring", rates);
  for (double& rate : rates.ours) rate *= 2;
  print("ring_issued", rates);
}

}  // namespace

void run_rows(gpu::Device& device, const Scale& scale, Parts& parts) {
  parts.run("copy", [&] {
    CopyBound bound(device, scale.row);
    const Side side = bound.side();
    const int repeats = repeats_for(side.work, scale.side_seconds, side.finish);
    std::vector<double> rates;
    for (int i = 0; i < scale.pairs; ++i)
      rates.push_back(side.bytes * repeats / seconds_of(side.work, repeats, side.finish));
    Line("rates").add("id", std::string_view("copy")).add("unit", std::string_view("bytes/s")).add("ours", rates).print();
  });
  const auto all = operations();
  for (const auto& operation : all) {
    parts.run(operation.name, [&] { measure(device, scale, operation); });
    if (operation.name == std::string_view("update")) parts.run("ring", [&] { measure_ring(device, scale); });
  }
}

}  // namespace gossamer::bench
