// Measures operations on rows. The bound is the bytes that an operation must move (each input read
// once, each output written once) over the bandwidth of a copy of a row on the GPU (bytes read and
// written). Operation and copy are measured alternately.
#include "gpu_bench_rows.hpp"

#include <limits>

#include "gpu/fault_word.hpp"

namespace gossamer::bench {
namespace {

/// Mixes into a row of NaN and checks the result before it is measured.
void check_mix(gpu::Device& device, const gpu::MixRequest& request) {
  const gpu::FillRequest<float> poison{std::numeric_limits<float>::quiet_NaN(), request.out,
                                       request.length};
  device.execute(std::span(&poison, 1));
  device.execute(std::span(&request, 1));
  const std::vector<float> x = sample(device, {request.x, request.length});
  std::vector<double> expected(x.begin(), x.end());
  for (const gpu::MixSource& source : request.sources) {
    const std::vector<float> row = sample(device, {source.row, request.length});
    for (std::size_t i = 0; i < x.size(); ++i)
      expected[i] += source.weight * (static_cast<double>(row[i]) - x[i]);
  }
  expect_close(sample(device, {request.out, request.length}), expected, "mix");
}

constexpr gpu::UpdateRule kMomentum{.momentum = 0.9}, kAdam{.kind = gpu::UpdateRule::Kind::adam};
constexpr double kRate = 1e-3;

void check_adam(gpu::Device& device, const gpu::UpdateJob<float>& job) {
  const auto x = sample(device, {job.parameters, job.length}),
             g = sample(device, {job.gradient, job.length});
  const auto m = sample(device, {job.state[0], job.length}),
             v = sample(device, {job.state[1], job.length});
  device.update(kAdam, std::span(&job, 1));
  std::vector<double> expected(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double first = kAdam.beta1 * m[i] + (1 - kAdam.beta1) * g[i];
    const double second = kAdam.beta2 * v[i] + (1 - kAdam.beta2) * g[i] * g[i];
    const double t = static_cast<double>(job.step) + 1;
    expected[i] = x[i] - kRate * first / (1 - std::pow(kAdam.beta1, t)) /
                             (std::sqrt(second / (1 - std::pow(kAdam.beta2, t))) + kAdam.epsilon);
  }
  expect_close(sample(device, {job.parameters, job.length}), expected, "adam");
}

void check_update(gpu::Device& device, const gpu::UpdateJob<float>& job) {
  const auto x = sample(device, {job.parameters, job.length}),
             v = sample(device, {job.state[0], job.length});
  const auto g = sample(device, {job.gradient, job.length});
  device.update(kMomentum, std::span(&job, 1));
  std::vector<double> expected(x.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    expected[i] = x[i] - kRate * (kMomentum.momentum * v[i] + g[i]);
  expect_close(sample(device, {job.parameters, job.length}), expected, "update");
}

/// Mixing and optimizer steps, with checked results.
std::vector<Operation> fused_operations() {
  using gpu::Device;
  const auto at = [](const Rows& rows, std::size_t i) { return rows.row(i).data(); };
  return {
      {"mix", 4, 16,
       [=](Device& d, const Rows& r) {
         auto sources = std::make_shared<std::vector<gpu::MixSource>>();
         *sources = {{at(r, 1), 1.0F / 3}, {at(r, 2), 1.0F / 3}};
         const gpu::MixRequest request{at(r, 0), at(r, 3), *sources, r.length()};
         check_mix(d, request);
         return Work([&d, request, sources] { d.execute(std::span(&request, 1)); });
       }},
      {"update", 3, 20,
       [=](Device& d, const Rows& r) {
         const gpu::UpdateJob<float> job{at(r, 0), {at(r, 1)}, at(r, 2), r.length(), kRate};
         check_update(d, job);
         return Work([&d, job] { d.update(kMomentum, std::span(&job, 1)); });
       }},
      {"adam", 4, 28,
       [=](Device& d, const Rows& r) {
         const gpu::UpdateJob<float> job{
             at(r, 0), {at(r, 1), at(r, 2)}, at(r, 3), r.length(), kRate, 1000};
         check_adam(d, job);
         return Work([&d, job] { d.update(kAdam, std::span(&job, 1)); });
       }},
  };
}

/// Copies, element-wise arithmetic, range checks and sketches.
std::vector<Operation> element_operations() {
  using gpu::Device;
  const auto at = [](const Rows& rows, std::size_t i) { return rows.row(i).data(); };
  return {
      {"copy_row", 2, 8,
       [=](Device& d, const Rows& r) {
         return repeat(d, gpu::CopyRequest<float>{at(r, 0), at(r, 1), r.length()});
       }},
      {"axpy", 2, 12,
       [=](Device& d, const Rows& r) {
         return repeat(d, gpu::AxpyRequest<float>{1e-6F, at(r, 0), at(r, 1), r.length()});
       }},
      {"add_difference", 3, 16,
       [=](Device& d, const Rows& r) {
         return repeat(d, gpu::DifferenceRequest<float>{at(r, 0), at(r, 1), at(r, 2), r.length()});
       }},
      {"scale", 1, 8,
       [=](Device& d, const Rows& r) {
         return repeat(d, gpu::ScaleRequest<float>{1.0000001F, at(r, 0), r.length()});
       }},
      {"divide", 3, 8,
       [=](Device& d, const Rows& r) {
         return repeat(d, gpu::DivideRequest<float>{at(r, 0), at(r, 1), at(r, 2), r.length()});
       }},
      {"fill", 1, 4,
       [=](Device& d, const Rows& r) {
         return repeat(d, gpu::FillRequest<float>{0.7F, at(r, 0), r.length()});
       }},
      {"check_range", 1, 4,
       [=](Device& d, const Rows& r) {
         auto word = std::make_shared<gpu::FaultWord>(d);
         const gpu::RangeCheckRequest request{at(r, 0), r.length(), 1e18F, word->word()};
         return Work([&d, request, word] { d.execute(std::span(&request, 1)); });
       }},
      {"sketch", 1, 4,
       [=](Device& d, const Rows& r) {
         auto sketch = std::make_shared<std::vector<double>>(gpu::sketch_length(r.length()));
         const gpu::SketchRequest<float> request{at(r, 0), r.length(), 5, sketch->data()};
         return Work([&d, request, sketch] { d.execute(std::span(&request, 1)); });
       }},
  };
}

/// The copy with which operations are compared, with its own rows.
class CopyBound {
 public:
  CopyBound(gpu::Device& device, std::size_t length) : rows_(random_rows(device, 2, length)) {
    device.finish();
  }

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
  Line("pairs")
      .add("id", id)
      .add("unit", std::string_view("bytes/s"))
      .add("ours", rates.ours)
      .add("theirs", rates.theirs)
      .print();
}

void measure(gpu::Device& device, const Scale& scale, const Operation& operation) {
  CopyBound bound(device, scale.row);
  const Rows rows = random_rows(device, operation.rows, scale.row);
  const Side ours{.work = operation.prepare(device, rows),
                  .finish = [&device] { device.finish(); },
                  .bytes = operation.bytes * static_cast<double>(scale.row)};
  print(operation.name, measure_pairs(ours, bound.side(), scale));
}

/// A mixing round of 16 peers on a ring, alternating between the two halves of their double
/// buffers. The bound counts each row read once and written once; `ring_issued` counts three rows
/// read and one written per peer.
void measure_ring(gpu::Device& device, const Scale& scale) {
  constexpr std::size_t kPeers = 16;
  CopyBound bound(device, scale.ring_row);
  const Rows buffers[] = {random_rows(device, kPeers, scale.ring_row),
                          random_rows(device, kPeers, scale.ring_row)};
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
  const Side ours{.work = [&] { device.execute(requests[round++ % 2]); },
                  .finish = [&device] { device.finish(); },
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
    Line("rates")
        .add("id", std::string_view("copy"))
        .add("unit", std::string_view("bytes/s"))
        .add("ours", rates)
        .print();
  });
  for (const auto& all : {fused_operations(), element_operations(), coded_operations()})
    for (const Operation& operation : all) {
      parts.run(operation.name, [&] { measure(device, scale, operation); });
      if (operation.name == std::string_view("update"))
        parts.run("ring", [&] { measure_ring(device, scale); });
    }
}

}  // namespace gossamer::bench
