#include "peer/benchmarks/bench_training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>

#include "base/philox.hpp"
#include "base/rows.hpp"
#include "gpu/cpu_device.hpp"
#include "peer/benchmarks/bench_statistics.hpp"
#include "train/learner.hpp"

namespace gossamer::peer {
namespace {

constexpr int kShard = 512, kClasses = 10;

struct TrainingCase {
  const char* name;
  const char* model;
  int side;
  int batch;
};
constexpr TrainingCase kTrainingCases[] = {
    {"softmax", "softmax", 8, 16}, {"mlp", "mlp", 28, 32}, {"cnn", "cnn", 28, 32}};

std::shared_ptr<train::Dataset> random_data(int peers, int side) {
  auto data = std::make_shared<train::Dataset>();
  data->name = "random";
  data->height = data->width = side;
  data->classes = kClasses;
  data->count = data->train_count = static_cast<std::size_t>(peers) * kShard;
  RandomStream random(0, kNoPeer, Purpose::data);
  for (std::size_t i = 0; i < data->count * data->feature_count(); ++i)
    data->features.push_back(static_cast<float>(random.next_normal()));
  for (std::size_t i = 0; i < data->count; ++i)
    data->labels.push_back(static_cast<std::int32_t>(random.below(kClasses)));
  return data;
}

train::Shards equal_shards(int peers) {
  train::Shards shards(static_cast<std::size_t>(peers));
  std::uint32_t next = 0;
  for (auto& shard : shards)
    for (int i = 0; i < kShard; ++i) shard.push_back(next++);
  return shards;
}

double measure(train::Learner<float>& learner, int peers, double seconds) {
  const auto count = static_cast<std::size_t>(peers);
  Rows<float> parameters(count, learner.parameters()), gradients(count, learner.parameters());
  std::vector<double> losses(count);
  std::vector<train::StepRequest<float>> requests(count);
  for (std::size_t p = 0; p < count; ++p) {
    learner.initialise(static_cast<int>(p), parameters.row(p));
    requests[p].peer = static_cast<int>(p);
    requests[p].parameters = parameters.row(p).data();
    requests[p].gradient = gradients.row(p).data();
    requests[p].loss = &losses[p];
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

}  // namespace

Result<double> bench_training_steps_per_second(const std::string& workload, int peers,
                                               double seconds) {
  const auto* found = std::find_if(std::begin(kTrainingCases), std::end(kTrainingCases),
                                   [&](const auto& known) { return workload == known.name; });
  if (found == std::end(kTrainingCases))
    return invalid_error(
        fmt::format("bench train: '{}' is unknown; there are: softmax, mlp, cnn", workload));
  auto data = random_data(peers, found->side);
  GOSSAMER_TRY(auto model,
               train::make_model(found->model, {1, found->side, found->side, kClasses}, {}));
  train::LearnerRequest request{
      .data = data, .shards = equal_shards(peers), .model = std::move(model)};
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
    requests.push_back(
        {rows.row(p).data(), back.row(p).data(), std::span(sources).subspan(2 * p, 2), length});
  gpu::CpuDevice device(1);
  MixBenchmark result;
  result.peers = peers;
  result.length = length;
  for (int i = -1; i < pairs; ++i) {
    const double mix = cpu_seconds_of([&] { device.execute(requests); });
    const double copy = cpu_seconds_of([&] {
      for (std::size_t p = 0; p < n; ++p)
        std::memcpy(back.row(p).data(), rows.row(p).data(), length * sizeof(float));
    });
    if (i < 0) continue;
    result.mix_seconds.push_back(mix);
    result.copy_seconds.push_back(copy);
    result.fractions.push_back(copy / mix);
  }
  const MedianInterval fraction = median_interval(result.fractions);
  result.median_fraction = fraction.median;
  result.low_fraction = fraction.low;
  result.high_fraction = fraction.high;
  const double bytes = static_cast<double>(n * length * sizeof(float));
  result.copy_bytes_per_second = bytes / median_interval(result.copy_seconds).median;
  return result;
}

}  // namespace gossamer::peer
