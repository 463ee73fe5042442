// Measures node steps per second of train::Learner: drawing and gathering batches, forward and
// backward passes, and update.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <memory>
#include <stdexcept>

#include "base/philox.hpp"
#include "gpu/device_rows.hpp"
#include "gpu_bench.hpp"
#include "train/learner.hpp"

namespace gossamer::bench {
namespace {

constexpr int kClasses = 10;

struct Workload {
  std::string name, model;
  ParameterValues parameters;
  int peers, side, batch, shard;
};

using Integers = std::vector<std::int64_t>;

std::vector<Workload> workloads(const Scale& scale) {
  if (scale.quick)
    return {{"mlp64", "mlp", {{"hidden", Integers{8}}}, 4, 4, 4, 16},
            {"mlp1", "mlp", {{"hidden", Integers{16, 16}}}, 1, 4, 8, 32},
            {"cnn1", "cnn", {{"channels", Integers{4, 4}}}, 1, 8, 2, 8}};
  return {{"mlp64", "mlp", {{"hidden", Integers{128}}}, 64, 28, 32, 512},
          {"mlp1", "mlp", {{"hidden", Integers{1024, 1024}}}, 1, 28, 512, 8192},
          {"cnn1", "cnn", {}, 1, 28, 256, 8192}};
}

std::shared_ptr<train::Dataset> random_data(const Workload& workload) {
  auto data = std::make_shared<train::Dataset>();
  data->name = "random";
  data->height = data->width = workload.side;
  data->classes = kClasses;
  data->count = data->train_count =
      static_cast<std::size_t>(workload.peers) * static_cast<std::size_t>(workload.shard);
  RandomStream random(0, kNoPeer, Purpose::data);
  data->features.resize(data->count * data->feature_count());
  for (float& value : data->features) value = static_cast<float>(random.next_normal());
  data->labels.resize(data->count);
  for (std::int32_t& label : data->labels)
    label = static_cast<std::int32_t>(random.below(kClasses));
  return data;
}

template <class T>
T require(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message);
  return std::move(result).value();
}

std::unique_ptr<train::Learner<float>> make_learner(const Workload& workload, gpu::Device& device) {
  train::LearnerRequest request;
  request.data = random_data(workload);
  const train::ModelContext context{1, workload.side, workload.side, kClasses};
  request.model = require(train::make_model(workload.model, context, workload.parameters));
  std::uint32_t next = 0;
  for (int p = 0; p < workload.peers; ++p) {
    auto& shard = request.shards.emplace_back();
    for (int i = 0; i < workload.shard; ++i) shard.push_back(next++);
  }
  request.sampling.batch = workload.batch;
  request.optimizer.rate = 0.01;
  return require(train::make_learner<float>(std::move(request), device));
}

/// All peers of a workload.
class Training {
 public:
  Training(gpu::Device& device, const Workload& workload)
      : device_(device),
        learner_(make_learner(workload, device)),
        count_(static_cast<std::size_t>(workload.peers)),
        parameters_(device, count_, learner_->parameters()),
        gradients_(device, count_, learner_->parameters()),
        losses_(device, 1, count_),
        requests_(count_) {
    std::vector<float> start(learner_->parameters());
    for (std::size_t p = 0; p < count_; ++p) {
      learner_->initialise(static_cast<int>(p), start);
      device.upload(parameters_.row(p).data(), start.data(), start.size() * sizeof(float));
      requests_[p].peer = static_cast<int>(p);
      requests_[p].parameters = parameters_.row(p).data();
      requests_[p].gradient = gradients_.row(p).data();
      requests_[p].loss = &losses_.row(0).data()[p];
    }
  }

  void call(int steps) {
    for (auto& request : requests_) {
      request.first_step = step_;
      request.steps = steps;
    }
    learner_->local_steps(requests_);
    step_ += static_cast<std::uint64_t>(steps);
  }

  double rate(int steps_per_call, double seconds) {
    const Work work = [&] { call(steps_per_call); }, finish = [&] { device_.finish(); };
    const int repeats = repeats_for(work, seconds, finish);
    const double elapsed = seconds_of(work, repeats, finish);
    check_losses();
    return static_cast<double>(repeats) * steps_per_call * static_cast<double>(count_) / elapsed;
  }

 private:
  /// A network that learns random labels starts with a loss near log 10, which then decreases.
  void check_losses() {
    std::vector<double> losses(count_);
    device_.download(losses.data(), losses_.row(0).data(), count_ * sizeof(double));
    for (const double loss : losses) {
      const double mean = loss / static_cast<double>(step_);
      if (!(std::isfinite(mean) && mean > 0 && mean < 10))
        throw std::runtime_error(
            fmt::format("a wrong result: a mean loss of {} after {} steps", mean, step_));
    }
  }

  gpu::Device& device_;
  std::unique_ptr<train::Learner<float>> learner_;
  std::size_t count_;
  gpu::DeviceRows<float> parameters_, gradients_;
  gpu::DeviceRows<double> losses_;
  std::vector<train::StepRequest<float>> requests_;
  std::uint64_t step_ = 0;
};

}  // namespace

const std::vector<std::string>& training_workloads() {
  static const std::vector<std::string> names = {"mlp64", "mlp1", "cnn1"};
  return names;
}

struct TrainingRates::State {
  gpu::Device& device;
  std::vector<Workload> known;
  std::map<std::string, std::unique_ptr<Training>> made = {};
};

TrainingRates::TrainingRates(gpu::Device& device, const Scale& scale)
    : state_(new State{.device = device, .known = workloads(scale)}) {}
TrainingRates::~TrainingRates() = default;

double TrainingRates::measure(const std::string& workload, int steps_per_call, double seconds) {
  for (const Workload& known : state_->known) {
    if (known.name != workload) continue;
    auto& training = state_->made[workload];
    if (training == nullptr) training = std::make_unique<Training>(state_->device, known);
    return training->rate(steps_per_call, seconds);
  }
  throw std::runtime_error(fmt::format("'{}' is no workload; there are: {}", workload,
                                       fmt::join(training_workloads(), ", ")));
}

}  // namespace gossamer::bench
