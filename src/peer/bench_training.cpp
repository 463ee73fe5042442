#include "peer/bench_training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <memory>
#include <span>

#include "base/philox.hpp"
#include "base/rows.hpp"
#include "gpu/cpu_device.hpp"
#include "train/learner.hpp"

namespace gossamer::peer {
namespace {

constexpr int kShard = 512, kClasses = 10;

struct Workload {
  const char* name;
  const char* model;
  int side;
  int batch;
};
constexpr Workload kWorkloads[] = {{"softmax", "softmax", 8, 16}, {"mlp", "mlp", 28, 32}, {"cnn", "cnn", 28, 32}};

std::shared_ptr<train::Dataset> random_data(int peers, int side) {
  auto data = std::make_shared<train::Dataset>();
  data->name = "random";
  data->height = data->width = side;
  data->classes = kClasses;
  data->count = data->train_count = static_cast<std::size_t>(peers) * kShard;
  RandomStream random(0, kNoPeer, Purpose::data);
  for (std::size_t i = 0; i < data->count * data->feature_count(); ++i)
    data->features.push_back(static_cast<float>(random.next_normal()));
  for (std::size_t i = 0; i < data->count; ++i) data->labels.push_back(static_cast<std::int32_t>(random.below(kClasses)));
  return data;
}

train::Shards equal_shards(int peers) {
  train::Shards shards(static_cast<std::size_t>(peers));
  std::uint32_t next = 0;
  for (auto& shard : shards)
    for (int i = 0; i < kShard; ++i) shard.push_back(next++);
  return shards;
}

/// CPU seconds of this process: what others do on a shared machine does not count.
double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <class Work>
double cpu_seconds_of(Work work) {
  const double start = cpu_seconds();
  work();
  return cpu_seconds() - start;
}

double measure(train::Learner<float>& learner, int peers, double seconds) {
  const auto count = static_cast<std::size_t>(peers);
  Rows<float> parameters(count, learner.parameters()), gradients(count, learner.parameters());
  std::vector<train::StepRequest<float>> requests(count);
  for (std::size_t p = 0; p < count; ++p) {
    learner.initialise(static_cast<int>(p), parameters.row(p));
    requests[p].peer = static_cast<int>(p);
    requests[p].parameters = parameters.row(p).data();
    requests[p].gradient = gradients.row(p).data();
  }
  std::uint64_t step = 0;
  const auto round = [&] {
    for (auto& request : requests) request.first_step = step;
    learner.local_steps(requests);
    ++step;
  };
  for (int i = 0; i < 3; ++i) round();  // caches, pages, clocks
  double elapsed = 0, done = 0;
  while (elapsed < seconds) {
    elapsed += cpu_seconds_of([&] {
      for (int i = 0; i < 10; ++i) round();
    });
    done += 10.0 * peers;
  }
  return done / elapsed;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : 0.5 * (values[half - 1] + values[half]);
}

/// The rank r (from 0) such that the r-th smallest and r-th largest of n values hold the median with at least 95 %:
/// P(Binomial(n, 1/2) ≤ r) ≤ 2.5 %.
std::size_t interval_rank(std::size_t n) {
  double term = 1, below = 0;
  for (std::size_t i = 0; i < n; ++i) term /= 2;
  for (std::size_t r = 0;; ++r) {
    below += term;
    if (below > 0.025) return r == 0 ? 0 : r - 1;
    term *= static_cast<double>(n - r) / static_cast<double>(r + 1);
  }
}

}  // namespace

Result<double> bench_training_steps_per_second(const std::string& workload, int peers, double seconds) {
  const auto* found = std::find_if(std::begin(kWorkloads), std::end(kWorkloads), [&](const auto& w) { return workload == w.name; });
  if (found == std::end(kWorkloads))
    return Error{ErrorKind::invalid, fmt::format("bench train: '{}' is unknown; there are: softmax, mlp, cnn", workload)};
  auto data = random_data(peers, found->side);
  GOSSAMER_TRY(auto model, train::make_model(found->model, {1, found->side, found->side, kClasses}, {}));
  train::LearnerRequest request{.data = data, .shards = equal_shards(peers), .model = std::move(model)};
  request.sampling.batch = found->batch;
  request.optimizer.rate = 0.01;
  gpu::CpuDevice device(1);
  GOSSAMER_TRY(auto learner, train::make_learner<float>(std::move(request), device));
  return measure(*learner, peers, seconds);
}

MixBenchmark bench_mix(int peers, std::size_t length, int pairs) {
  const auto n = static_cast<std::size_t>(peers);
  Rows<float> rows(n, length), back(n, length);
  for (std::size_t p = 0; p < n; ++p) {
    RandomStream random(0, static_cast<std::uint32_t>(p), Purpose::test);
    for (float& value : rows.row(p)) value = random.next_float();
    std::memset(back.row(p).data(), 1, length * sizeof(float));
  }
  std::vector<gpu::MixSource> sources;
  for (std::size_t p = 0; p < n; ++p) {
    const std::size_t left = (p + n - 1) % n, right = (p + 1) % n;
    for (std::size_t neighbour : {std::min(left, right), std::max(left, right)})
      sources.push_back({rows.row(neighbour).data(), 1.0F / 3});
  }
  std::vector<gpu::MixRequest> requests;
  for (std::size_t p = 0; p < n; ++p)
    requests.push_back({rows.row(p).data(), back.row(p).data(), std::span(sources).subspan(2 * p, 2), length});
  gpu::CpuDevice device(1);
  MixBenchmark result{.peers = peers, .length = length};
  for (int i = -1; i < pairs; ++i) {
    const double mix = cpu_seconds_of([&] { device.mix(requests); });
    const double copy = cpu_seconds_of([&] {
      for (std::size_t p = 0; p < n; ++p) std::memcpy(back.row(p).data(), rows.row(p).data(), length * sizeof(float));
    });
    if (i < 0) continue;
    result.mix_seconds.push_back(mix);
    result.copy_seconds.push_back(copy);
    result.fractions.push_back(copy / mix);
  }
  std::vector<double> sorted = result.fractions;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t rank = interval_rank(sorted.size());
  result.median_fraction = median(result.fractions);
  result.low_fraction = sorted[rank];
  result.high_fraction = sorted[sorted.size() - 1 - rank];
  result.copy_bytes_per_second = static_cast<double>(n * length * sizeof(float)) / median(result.copy_seconds);
  return result;
}

}  // namespace gossamer::peer
