// Vocabulary of the tests of networks: random tables, a network on the CPU, its gradient and its
// loss.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "base/philox.hpp"
#include "base/rows.hpp"
#include "gpu/cpu_device.hpp"
#include "train/graph/compiled_model.hpp"
#include "train/split/split_model.hpp"

namespace gossamer::train {

inline constexpr std::uint64_t kTestSeed = 7;

inline SplitModel split_of(const CompiledModel& model, const SplitOptions& options, int batch) {
  auto split = SplitModel::make(model, options, batch);
  if (!split.ok()) FAIL(split.error().message);
  return std::move(split).value();
}

/// Samples of normal features with random labels and targets.
struct TestTable {
  std::vector<float> features, targets;
  std::vector<std::int32_t> labels;
  std::vector<std::uint32_t> all;  ///< 0, 1, …

  TestTable(const ModelContext& data, int count) {
    RandomStream random(kTestSeed, kNoPeer, Purpose::test, 0);
    const int size = data.channels * data.height * data.width;
    for (int i = 0; i < count * size; ++i)
      features.push_back(static_cast<float>(random.next_normal()));
    for (int i = 0; i < count; ++i) {
      labels.push_back(static_cast<std::int32_t>(
          random.below(static_cast<std::uint32_t>(std::max(data.classes, 1)))));
      targets.push_back(static_cast<float>(random.next_normal()));
      all.push_back(static_cast<std::uint32_t>(i));
    }
  }
  gpu::SampleTable view() const {
    return {.features = features.data(), .labels = labels.data(), .targets = targets.data()};
  }
};

/// A network with its samples: `batch` of them at a time.
struct Bench {
  Bench(const ModelSpec& spec, const ModelContext& data, int batch_size)
      : batch(batch_size), table(data, batch_size), network(compiled(spec, data, batch_size)) {}

  static CompiledModel compiled(const ModelSpec& spec, const ModelContext& data, int batch) {
    auto network = CompiledModel::compile(spec, data, batch);
    if (!network.ok()) FAIL(network.error().message);
    return std::move(network).value();
  }

  /// Initial weights, with all parameters moved off round values.
  template <class Real>
  std::vector<Real> parameters() const {
    std::vector<double> row(network.parameters());
    network.initialise<double>(kTestSeed, kNoPeer, row);
    RandomStream random(kTestSeed, kNoPeer, Purpose::test, 1);
    for (double& value : row) value += 0.1 * random.next_normal();
    return {row.begin(), row.end()};
  }

  gpu::Task task() const { return {.program = &network.program(), .tables = {table.view()}}; }

  template <class Real>
  double loss(const std::vector<Real>& row, std::int64_t* hits = nullptr) {
    double loss = 0;
    const gpu::Job<Real> job{.parameters = const_cast<Real*>(row.data()),
                             .samples = table.all.data(),
                             .batch = batch,
                             .loss = &loss,
                             .hits = hits};
    gpu::BasicCpuDevice<Real>(1).train(task(), gpu::Pass::evaluate, std::span(&job, 1));
    return loss;
  }

  template <class Real>
  std::vector<Real> gradient(std::vector<Real> row, double* loss_out = nullptr) {
    std::vector<Real> gradient(row.size());
    double loss = 0;
    const gpu::Job<Real> job{.parameters = row.data(),
                             .gradient = gradient.data(),
                             .samples = table.all.data(),
                             .batch = batch,
                             .loss = &loss};
    gpu::BasicCpuDevice<Real>(1).train(task(), gpu::Pass::gradient, std::span(&job, 1));
    if (loss_out != nullptr) *loss_out = loss;
    return gradient;
  }

  int batch;
  TestTable table;
  CompiledModel network;
};

/// ‖a − b‖ / ‖b‖.
template <class A, class B>
double relative_error(const std::vector<A>& a, const std::vector<B>& b) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
    difference += (x - y) * (x - y);
    size += y * y;
  }
  return std::sqrt(difference / size);
}

/// The gradient in double by central differences, one coordinate after the other.
inline std::vector<double> numeric_gradient(Bench& bench, const std::vector<double>& row) {
  constexpr double h = 1e-5;
  std::vector<double> moved = row, gradient(row.size());
  for (std::size_t i = 0; i < row.size(); ++i) {
    moved[i] = row[i] + h;
    const double above = bench.loss(moved);
    moved[i] = row[i] - h;
    gradient[i] = (above - bench.loss(moved)) / (2 * h);
    moved[i] = row[i];
  }
  return gradient;
}

/// The test of every network: its gradient is the gradient of its loss, and float follows double.
inline void check_gradient(Bench bench) {
  const auto row = bench.parameters<double>();
  double loss = 0;
  const auto gradient = bench.gradient(row, &loss);
  CHECK(loss == bench.loss(row));
  CHECK(relative_error(gradient, numeric_gradient(bench, row)) < 1e-6);
  for (const ParameterBlock& block :
       bench.network.blocks()) {  // block by block, so that no small block is hidden
    double size = 0;
    for (std::size_t i = 0; i < block.length; ++i) size += std::abs(gradient[block.offset + i]);
    CAPTURE(block.name);
    CHECK(size > 0);
  }
  double single_loss = 0;
  const auto single = bench.gradient(bench.parameters<float>(), &single_loss);
  CHECK(relative_error(single, gradient) < 1e-4);
  CHECK(std::abs(single_loss - loss) < 1e-5 * (1 + loss));
}

}  // namespace gossamer::train
