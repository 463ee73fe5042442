// Products of float rows with rounded factors: what they lose, and that nothing else changes.
#include "tests/cuda/training_test_util.hpp"

using namespace gossamer;
using namespace gossamer::train;
using gpu::cuda::MatmulPrecision;

namespace {

constexpr ModelContext kGreyImage{.channels = 1, .height = 12, .width = 12, .classes = 10};

/// The first layer's outputs are too many for the kernel of narrow layers.
ModelSpec wide() {
  return chain({Dense{.units = 300, .activation = Activation::tanh}, Dense{.units = 10}},
               Loss::softmax_cross_entropy);
}

template <class Real>
Outcome gradients_on(gpu::BasicDevice<Real>& device, std::size_t peers, bool ragged = false) {
  const Samples samples(kGreyImage, 80);
  const CompiledModel network = compiled(wide(), kGreyImage, 64);
  Fleet<Real> fleet(device, network, samples, peers, ragged);
  fleet.run({}, {64});
  return fleet.outcome();
}

/// A device of the first GPU, which multiplies rounded factors. Null if there is none that can.
std::unique_ptr<Device> rounding_gpu(MatmulPrecision precision) {
  const gpu::cuda::Discovery discovery = gpu::cuda::discover_gpus();
  if (!discovery.problem.empty() || discovery.gpus.front().compute_major < 8) return nullptr;
  auto device = gpu::cuda::make_cuda_device({.matmul_precision = precision});
  if (!device.ok()) FAIL(device.error().message);
  return std::move(device).value();
}

}  // namespace

TEST_CASE("GPU: rounded factors of products cost what their bits are worth") {
  gpu::BasicCpuDevice<double> cpu(1);
  struct Kind {
    MatmulPrecision precision;
    double least, most;  ///< the relative error of a gradient
    const char* text;    ///< in the device's description
  };
  for (const std::size_t peers : {std::size_t{1}, std::size_t{3}}) {
    const Outcome exact = gradients_on(cpu, peers);
    std::vector<double> finer(peers);  // errors of the precision before
    for (const Kind& kind : {Kind{MatmulPrecision::float32, 0, 1e-5, " GiB"},
                             {MatmulPrecision::tf32, 2e-5, 1e-3, ", matrix products in tf32"},
                             {MatmulPrecision::bf16, 5e-4, 1e-2, ", matrix products in bf16"}}) {
      const auto device = rounding_gpu(kind.precision);
      if (device == nullptr) return;
      CAPTURE(kind.text);
      CHECK(device->description().ends_with(kind.text));
      const Outcome rounded = gradients_on(*device, peers);
      CHECK(rounded == gradients_on(*device, peers));
      for (std::size_t p = 0; p < peers; ++p) {
        const double error = relative_error(rounded.gradients[p], exact.gradients[p]);
        CHECK(error >= kind.least);
        CHECK(error <= kind.most);
        CHECK(error > 4 * finer[p]);  // tf32 has three bits more than bf16
        finer[p] = error;
      }
    }
  }
}

TEST_CASE("GPU: products of rows off alignment, at unequal distances, at any precision") {
  gpu::BasicCpuDevice<double> cpu(1);
  const Outcome exact = gradients_on(cpu, 3);
  for (const MatmulPrecision precision : {MatmulPrecision::tf32, MatmulPrecision::bf16}) {
    const auto device = rounding_gpu(precision);
    if (device == nullptr) return;
    const Outcome rounded = gradients_on(*device, 3, true);
    for (std::size_t p = 0; p < 3; ++p)
      CHECK(relative_error(rounded.gradients[p], exact.gradients[p]) <= 1e-2);
  }
}

TEST_CASE("GPU: products of doubles are computed in double at any precision of floats") {
  GOSSAMER_GPU_OF(double, plain);
  auto device = gpu::cuda::make_cuda_device<double>({.matmul_precision = MatmulPrecision::bf16});
  REQUIRE(device.ok());
  CHECK(gradients_on(**device, 2) == gradients_on(*plain, 2));
}
