// Products of the matrices of a row with vectors, and updates of rank 1: a GPU gives the bits of
// the CPU.
#include <limits>

#include "tests/cuda/test_util.hpp"

using namespace gossamer;
using namespace gossamer::gpu;

namespace {

/// Shapes around the sizes of a lane, a thread and a chunk, and vectors.
const std::vector<std::vector<MatrixShape>> kModels{
    {{0, 2, 2}},
    {{0, 15, 17}, {255, 1, 9}, {264, 300, 2}, {864, 2, 300}},
    {{3, 1, 1}, {5, 257, 16}, {4117, 1025, 1}},
    {{0, 33, 600}},
};

std::size_t sum_over(std::span<const MatrixShape> matrices, bool left,
                     std::size_t (MatrixShape::*length)(bool) const) {
  std::size_t sum = 0;
  for (const MatrixShape& shape : matrices) sum += (shape.*length)(left);
  return sum;
}

/// A vector in the memory of both devices.
template <class Real>
struct OnBoth {
  OnBoth(Memory& device, std::vector<Real> values)
      : on_cpu(std::move(values)), on_gpu(device, on_cpu) {}
  Real* get(bool gpu) { return gpu ? on_gpu.get() : on_cpu.data(); }
  bool same() { return same_bits(on_gpu.values(), on_cpu); }
  std::vector<Real> on_cpu;
  Held<Real> on_gpu;
};

template <class Real>
struct LowRankTwins {
  LowRankTwins(Memory& device, std::span<const MatrixShape> matrices_in, bool left_in, Real scale)
      : matrices(matrices_in),
        left(left_in),
        x(device, normal<Real>(matrices.back().offset + matrices.back().length(), 1)),
        directions(device, normal<Real>(sum_over(matrices, left, &MatrixShape::direction), 2,
                                        static_cast<double>(scale))),
        products(device, std::vector<Real>(sum_over(matrices, left, &MatrixShape::product))),
        theirs(device, normal<Real>(products.on_cpu.size(), 3)),
        next(device, std::vector<Real>(sum_over(matrices, !left, &MatrixShape::direction))) {}

  /// A direction of a row that diverges.
  void spoil(Real value) {
    directions.on_cpu[directions.on_cpu.size() / 2] = value;
    directions.on_gpu.set(directions.on_cpu);
  }

  ProjectRequest<Real> project(bool gpu) {
    return {x.get(gpu),          x.on_cpu.size(),   matrices,  left,
            directions.get(gpu), products.get(gpu), {7, 3, 11}};
  }
  AddProductRequest<Real> add(bool gpu, bool reversed) {
    return {.x = x.get(gpu),
            .length = x.on_cpu.size(),
            .matrices = matrices,
            .left = left,
            .directions = directions.get(gpu),
            .own = products.get(gpu),
            .theirs = theirs.get(gpu),
            .next = next.get(gpu),
            .reversed = reversed,
            .factor = Real(0.3)};
  }

  std::span<const MatrixShape> matrices;
  bool left;
  OnBoth<Real> x, directions, products, theirs, next;
};

}  // namespace

TEST_CASE_TEMPLATE("GPU: products and updates of rank 1 have the bits of the CPU's", Real, float,
                   double) {
  GOSSAMER_GPU_OF(Real, gpu_device);
  BasicCpuDevice<Real> cpu(1);
  std::vector<LowRankTwins<Real>> twins;
  for (const auto& matrices : kModels)
    for (const bool left : {false, true})
      for (const Real scale : {Real(1), Real(0)})  // 0: random signs
        twins.emplace_back(*gpu_device, matrices, left, scale);
  for (const bool left : {false, true})
    for (const Real value : {std::numeric_limits<Real>::infinity(), Real(NAN)}) {
      twins.emplace_back(*gpu_device, kModels[1], left, Real(1));
      twins.back().spoil(value);
    }
  std::vector<ProjectRequest<Real>> projects[2];
  std::vector<AddProductRequest<Real>> adds[2];
  for (const bool gpu : {false, true})
    for (std::size_t k = 0; k < twins.size(); ++k) {
      projects[gpu].push_back(twins[k].project(gpu));
      adds[gpu].push_back(twins[k].add(gpu, k % 3 == 0));
    }
  gpu_device->execute(projects[1]);
  gpu_device->execute(adds[1]);
  cpu.execute(projects[0]);
  cpu.execute(adds[0]);
  for (LowRankTwins<Real>& each : twins) {
    CAPTURE(each.left);
    CAPTURE(each.matrices.size());
    CHECK(each.directions.same());
    CHECK(each.products.same());
    CHECK(each.x.same());
    CHECK(each.next.same());
  }
  gpu_device->execute(std::span<const ProjectRequest<Real>>());
  gpu_device->execute(std::span<const AddProductRequest<Real>>());
}
