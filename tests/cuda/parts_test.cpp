// Parts of a cut model on a GPU: gradients against those of the whole model on the CPU, and
// replicas on several GPUs.
#include "gpu/device_rows.hpp"
#include "tests/cuda/training_test_util.hpp"
#include "tests/train/graph_test_util.hpp"
#include "train/split/pipelined_gradient.hpp"

using namespace gossamer;
using namespace gossamer::train;

namespace {

template <class Real>
struct Gradient {
  std::vector<Real> values;
  double loss = 0;
};

template <class Real>
std::vector<Real> start_of(const CompiledModel& model) {
  std::vector<double> row(model.parameters());
  model.initialise<double>(5, kNoPeer, row);
  RandomStream random(5, kNoPeer, Purpose::test, 6);
  for (double& value : row) value += 0.1 * random.next_normal();
  return {row.begin(), row.end()};
}

/// The gradient of the whole model on the CPU, in double.
Gradient<double> whole_gradient(const CompiledModel& model, const Samples& samples,
                                const std::vector<std::uint32_t>& batch, double weight) {
  std::vector<double> row = start_of<double>(model);
  Gradient<double> gradient{std::vector<double>(row.size()), 0};
  const gpu::Task task{
      .program = &model.program(),
      .tables = {{samples.features.data(), samples.labels.data(), samples.targets.data()}}};
  const gpu::Job<double> job{.parameters = row.data(),
                             .gradient = gradient.values.data(),
                             .samples = batch.data(),
                             .batch = static_cast<int>(batch.size()),
                             .weight = weight,
                             .loss = &gradient.loss};
  gpu::BasicCpuDevice<double>(1).train(task, gpu::Pass::gradient, std::span(&job, 1));
  return gradient;
}

/// The gradients of `replicas` replicas of the cut model on the device, spread over its GPUs.
template <class Real>
std::vector<Gradient<Real>> cut_gradients(gpu::BasicDevice<Real>& device,
                                          const CompiledModel& model, const Samples& samples,
                                          const std::vector<std::uint32_t>& batch, double weight,
                                          const SplitOptions& options, std::size_t replicas) {
  const auto size = static_cast<int>(batch.size());
  auto split = SplitModel::make(model, options, size);
  if (!split.ok()) FAIL(split.error().message);
  gpu::Task task;
  std::vector<Held<float>> features;
  std::vector<Held<std::int32_t>> labels;
  for (int g = 0; g < device.gpu_count(); ++g) {
    features.emplace_back(device, samples.features, 0, g);
    labels.emplace_back(device, samples.labels, 0, g);
    task.tables.push_back({.features = features.back().get(), .labels = labels.back().get()});
  }
  const std::vector<Real> start = start_of<Real>(model);
  const gpu::DeviceRows<Real> x(device, replicas, start.size()),
      gradients(device, replicas, start.size());
  const gpu::DeviceRows<double> losses(device, replicas, 1);
  std::vector<PipelinedRequest<Real>> requests;
  for (std::size_t r = 0; r < replicas; ++r) {
    device.upload(x.row(r).data(), start.data(), start.size() * sizeof(Real));
    requests.push_back({.samples = batch.data(),
                        .batch = size,
                        .parameters = x.row(r).data(),
                        .gradient = gradients.row(r).data(),
                        .weight = weight,
                        .loss = losses.row(r).data()});
  }
  PipelinedGradient<Real>(std::move(split).value(), options, device).compute(task, requests);
  std::vector<Gradient<Real>> results;
  for (std::size_t r = 0; r < replicas; ++r) {
    auto& [values, loss] = results.emplace_back(Gradient<Real>{std::vector<Real>(start.size()), 0});
    device.download(values.data(), gradients.row(r).data(), start.size() * sizeof(Real));
    device.download(&loss, losses.row(r).data(), sizeof loss);
  }
  return results;
}

}  // namespace

TEST_CASE_TEMPLATE("GPU: cut models have the gradients of whole ones on the CPU", Real, float,
                   double) {
  GOSSAMER_GPU_OF(Real, gpu_device);
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    CAPTURE(seed);
    const RandomGraph graph(seed);
    const std::vector<std::uint32_t> batch{3, 1, 4, 1, 5, 9, 2};
    const CompiledModel model = compiled(graph.spec(), kSmallImage, 7);
    const Samples samples(kSmallImage, 10);
    const Gradient<double> expected = whole_gradient(model, samples, batch, 1.5);
    double size = 0;
    for (const double value : expected.values) size += value * value;
    const auto parameterised = std::ranges::count_if(
        model.operations(),
        [](const CompiledOperation& operation) { return operation.parameters > 0; });
    const int most = static_cast<int>(parameterised);
    for (const SplitOptions& options : {SplitOptions{.layers = 2, .microbatches = 3},
                                        {.layers = most, .microbatches = 5 - most % 3},
                                        {.parameters = 2},
                                        {.layers = 2, .parameters = 2, .microbatches = 3}}) {
      if (options.parameters > 1 && !SplitModel::make(model, options, 7).ok()) continue;
      CAPTURE(options.layers);
      CAPTURE(options.parameters);
      const auto gradients =
          cut_gradients<Real>(*gpu_device, model, samples, batch, 1.5, options, 2);
      for (const auto& [values, loss] : gradients) {
        double error = 0;
        for (std::size_t i = 0; i < values.size(); ++i)
          error += std::pow(static_cast<double>(values[i]) - expected.values[i], 2);
        CHECK(std::sqrt(error) <= kTrainingError<Real> * std::sqrt(size));
        CHECK(loss == doctest::Approx(expected.loss).epsilon(kTrainingError<Real>));
      }
    }
  }
}

TEST_CASE("GPUs: each replica of a cut model is on one of them, with the bits of one GPU") {
  const auto device = gpu::gpus_or_skip(2);
  if (device == nullptr) return;
  const auto one = gpu::gpu_or_skip();
  const std::vector<std::uint32_t> batch{0, 1, 2, 3, 4};
  const CompiledModel model = compiled(RandomGraph(2).spec(), kSmallImage, 5);
  const Samples samples(kSmallImage, 5);
  const SplitOptions options{.layers = 2, .microbatches = 2};
  const auto there = cut_gradients<float>(*device, model, samples, batch, 1, options, 3);
  const auto here = cut_gradients<float>(*one, model, samples, batch, 1, options, 1);
  for (const auto& gradient : there) {
    CHECK(gpu::same_bits(gradient.values, here[0].values));
    CHECK(gradient.loss == here[0].loss);
  }
}
