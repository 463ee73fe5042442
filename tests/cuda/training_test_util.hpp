// Vocabulary of the tests of training on a GPU: a fleet of peers trains on any device, and the
// outcomes are compared.
#pragma once

#include <string>

#include "tests/cuda/test_util.hpp"
#include "train/graph/compiled_model.hpp"
#include "train/model.hpp"

namespace gossamer::train {

using gpu::Device;
using gpu::Held;

/// The same samples for every device.
struct Samples {
  std::vector<float> features, targets;
  std::vector<std::int32_t> labels;

  Samples(const ModelContext& data, std::size_t count) {
    features = gpu::normal<float>(
        count * static_cast<std::size_t>(data.channels * data.height * data.width), 1);
    targets = gpu::normal<float>(count, 2);
    RandomStream random(3, kNoPeer, Purpose::test, 3);
    for (std::size_t i = 0; i < count; ++i)
      labels.push_back(static_cast<std::int32_t>(
          random.below(static_cast<std::uint32_t>(std::max(data.classes, 1)))));
  }
  std::size_t count() const { return labels.size(); }
};

inline CompiledModel compiled(const ModelSpec& spec, const ModelContext& data, int batch) {
  auto network = CompiledModel::compile(spec, data, batch);
  if (!network.ok()) FAIL(network.error().message);
  return std::move(network).value();
}

inline ModelSpec model(const std::string& kind, const ModelContext& data,
                       const ParameterValues& values = {}) {
  auto spec = make_model(kind, data, values);
  if (!spec.ok()) FAIL(spec.error().message);
  return std::move(spec).value();
}

/// The state of each peer of a fleet, in double whatever the device's number type.
struct Outcome {
  std::vector<std::vector<double>> parameters, first, second,
      gradients;  ///< first and second: the optimizer's rows
  std::vector<double> losses;
  std::vector<std::int64_t> hits;
  bool operator==(const Outcome&) const = default;
};

/// How a fleet trains in one call.
struct Plan {
  gpu::Pass pass = gpu::Pass::gradient;
  int steps = 1;
  gpu::UpdateRule rule = {};
  gpu::GradientNoise noise = {};
  std::uint64_t first_step = 0;
  double rate = 0.05;
  bool weighted = false;  ///< each peer's gradients have another weight
  gpu::ImageViews views = {};
};

/// `peers` rows of one network in a device's memory, each peer with its own start and its own
/// batches. Rows of odd peers lie off alignment where `ragged`.
template <class Real>
class Fleet {
 public:
  Fleet(gpu::BasicDevice<Real>& device, const CompiledModel& network, const Samples& samples,
        std::size_t peers, bool ragged = false)
      : device_(device),
        network_(network),
        count_(samples.count()),
        features_(device, samples.features),
        labels_(device, samples.labels),
        targets_(device, samples.targets),
        losses_(device, std::vector<double>(peers, 0.5)),
        hits_(device, std::vector<std::int64_t>(peers, 3)) {
    for (std::size_t p = 0; p < peers; ++p) {
      std::vector<double> start(network.parameters());
      network.initialise<double>(7, static_cast<std::uint32_t>(p), start);
      RandomStream random(7, static_cast<std::uint32_t>(p), Purpose::test, 1);
      for (double& value : start)
        value += 0.1 * random.next_normal();  // biases and scales off their round values
      const std::size_t offset = ragged ? p % 2 : 0;
      // The same values for both number types: what float can hold.
      parameters_.emplace_back(device, gpu::as<Real>(gpu::as<float>(start)), offset);
      first_.emplace_back(device, std::vector<Real>(start.size()), offset);
      second_.emplace_back(device, std::vector<Real>(start.size()), offset);
      gradients_.emplace_back(device, start.size(), offset);
    }
  }

  std::size_t peers() const { return parameters_.size(); }
  double* loss(std::size_t peer) { return losses_.get() + peer; }

  /// One call for `peers` (all peers if it is empty), with batch sizes from `batches` in turn. The
  /// inputs of a step depend on its number, not on the call.
  void run(const Plan& plan, const std::vector<int>& batches, std::vector<std::size_t> peers = {}) {
    if (peers.empty())
      for (std::size_t p = 0; p < this->peers(); ++p) peers.push_back(p);
    std::vector<std::vector<std::uint32_t>> samples;
    std::vector<double> rates;
    for (int s = 0; s < plan.steps; ++s)
      rates.push_back(
          plan.rate /
          (1 + 0.1 * static_cast<double>((plan.first_step + static_cast<std::uint64_t>(s)) % 7)));
    std::vector<gpu::Job<Real>> jobs;
    for (const std::size_t p : peers) {
      const int batch = batches[p % batches.size()];
      samples.emplace_back();
      for (int s = 0; s < plan.steps; ++s) {
        const std::uint64_t step = plan.first_step + static_cast<std::uint64_t>(s);
        RandomStream random(11, static_cast<std::uint32_t>(p), Purpose::test, step);
        for (int i = 0; i < batch; ++i) {
          const std::uint32_t number = random.below(static_cast<std::uint32_t>(count_));
          const std::uint32_t view = plan.views.on() ? random.below(plan.views.count()) : 0;
          samples.back().push_back(gpu::ImageViews::index(number, view));
        }
      }
      jobs.push_back({.parameters = parameters_[p].get(),
                      .state = {first_[p].get(), second_[p].get()},
                      .gradient = gradients_[p].get(),
                      .samples = samples.back().data(),
                      .batch = batch,
                      .steps = plan.steps,
                      .rates = rates.data(),
                      .peer = static_cast<std::uint32_t>(p),
                      .first_step = plan.first_step,
                      .weight = plan.weighted ? 0.3 + 0.7 * static_cast<double>(p) : 1,
                      .loss = losses_.get() + p,
                      .hits = p % 3 == 2 ? nullptr : hits_.get() + p});
    }
    {
      const gpu::Task task{&network_.program(),
                           {{features_.get(), labels_.get(), targets_.get()}},
                           plan.rule,
                           plan.noise,
                           plan.views};
      device_.train(task, plan.pass, jobs);
    }
    // The call has returned, so the host memory that it read may change.
    for (auto& some : samples) std::fill(some.begin(), some.end(), 0xFFFF'FFFFU);
    std::fill(rates.begin(), rates.end(), NAN);
    std::fill(jobs.begin(), jobs.end(), gpu::Job<Real>());
  }

  Outcome outcome() const {
    Outcome all;
    device_.finish();
    for (std::size_t p = 0; p < peers(); ++p) {
      all.parameters.push_back(gpu::as<double>(parameters_[p].values()));
      all.first.push_back(gpu::as<double>(first_[p].values()));
      all.second.push_back(gpu::as<double>(second_[p].values()));
      all.gradients.push_back(gpu::as<double>(gradients_[p].values()));
    }
    all.losses = losses_.values();
    all.hits = hits_.values();
    return all;
  }

 private:
  gpu::BasicDevice<Real>& device_;
  const CompiledModel& network_;
  std::size_t count_;
  Held<float> features_;
  Held<std::int32_t> labels_;
  Held<float> targets_;
  Held<double> losses_;
  Held<std::int64_t> hits_;
  std::vector<Held<Real>> parameters_, first_, second_, gradients_;
};

/// Losses and hits of samples of which each is evaluated alone, at parameters of zero and with
/// label 0.
template <class Real>
struct EachAlone {
  EachAlone(gpu::BasicDevice<Real>& device, const CompiledModel& network, std::size_t count,
            const std::vector<float>& values) {
    const Held<float> features(device, values);
    const Held<std::int32_t> labels(device, std::vector<std::int32_t>(count, 0));
    const Held<std::int64_t> counted(device, std::vector<std::int64_t>(count));
    const Held<double> summed(device, std::vector<double>(count));
    const Held<Real> parameters(device, std::vector<Real>(network.parameters(), 0));
    std::vector<std::uint32_t> samples;
    for (std::uint32_t i = 0; i < count; ++i) samples.push_back(i);
    std::vector<gpu::Job<Real>> jobs;
    for (std::size_t i = 0; i < count; ++i)
      jobs.push_back({.parameters = parameters.get(),
                      .samples = &samples[i],
                      .batch = 1,
                      .loss = summed.get() + i,
                      .hits = counted.get() + i});
    device.train(
        {.program = &network.program(), .tables = {{features.get(), labels.get(), nullptr}}},
        gpu::Pass::evaluate, jobs);
    losses = summed.values();
    hits = counted.values();
  }
  std::vector<bool> have_nan() const {
    std::vector<bool> nan;
    for (const double loss : losses) nan.push_back(std::isnan(loss));
    return nan;
  }

  std::vector<double> losses;
  std::vector<std::int64_t> hits;
};

inline double norm(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

/// ‖a − b‖ / (‖b‖ + floor); 0 where both are nothing, NaN where anything is.
inline double relative_error(std::vector<double> a, const std::vector<double>& b,
                             double floor = 0) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
  return norm(a) == 0 ? 0 : norm(a) / (norm(b) + floor);
}

/// Error bound of a few layers' roundings.
template <class Real>
constexpr double kTrainingError = sizeof(Real) == 4 ? 2e-5 : 1e-12;

/// Compares peer by peer, and gradients block by block, so that no layer hides behind a larger one.
/// (The gradient of a bias directly before a norm consists of roundings only.)
inline void check_close(const CompiledModel& network, const Outcome& on_gpu, const Outcome& on_cpu,
                        double tolerance, gpu::Pass pass) {
  for (std::size_t p = 0; p < on_cpu.parameters.size(); ++p) {
    CAPTURE(p);
    CHECK(std::abs(on_gpu.losses[p] - on_cpu.losses[p]) <
          tolerance * (1 + std::abs(on_cpu.losses[p])));
    CHECK(relative_error(on_gpu.parameters[p], on_cpu.parameters[p]) < tolerance);
    CHECK(relative_error(on_gpu.first[p], on_cpu.first[p]) < 10 * tolerance);
    CHECK(relative_error(on_gpu.second[p], on_cpu.second[p]) < 10 * tolerance);
    if (pass == gpu::Pass::evaluate) continue;
    for (const ParameterBlock& block : network.blocks()) {
      CAPTURE(block.name);
      const auto of = [&](const std::vector<double>& row) {
        const auto begin = row.begin() + static_cast<std::ptrdiff_t>(block.offset);
        return std::vector<double>(begin, begin + static_cast<std::ptrdiff_t>(block.length));
      };
      CHECK(relative_error(of(on_gpu.gradients[p]), of(on_cpu.gradients[p]),
                           1e-3 * norm(on_cpu.gradients[p])) < 10 * tolerance);
    }
  }
  CHECK(on_gpu.hits == on_cpu.hits);
}

/// Checks that a fleet has the same outcome on a GPU and, in double, on the CPU.
template <class Real>
void check_parity_on(gpu::BasicDevice<Real>& device, const ModelSpec& spec,
                     const ModelContext& data, const Samples& samples, const Plan& plan,
                     const std::vector<int>& batches, std::size_t peers, double slack = 1) {
  const CompiledModel network =
      compiled(spec, data, *std::max_element(batches.begin(), batches.end()));
  gpu::BasicCpuDevice<double> cpu(1);
  Fleet<Real> on_gpu(device, network, samples, peers, true);
  Fleet<double> on_cpu(cpu, network, samples, peers);
  on_gpu.run(plan, batches);
  on_cpu.run(plan, batches);
  check_close(network, on_gpu.outcome(), on_cpu.outcome(), slack * kTrainingError<Real>, plan.pass);
}

/// The same on samples of normal features.
template <class Real>
void check_parity(gpu::BasicDevice<Real>& device, const ModelSpec& spec, const ModelContext& data,
                  const Plan& plan, const std::vector<int>& batches, std::size_t peers,
                  double slack = 1) {
  check_parity_on(device, spec, data, Samples(data, 40), plan, batches, peers, slack);
}

}  // namespace gossamer::train
