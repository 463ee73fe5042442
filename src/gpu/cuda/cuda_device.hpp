// One GPU, or several, as a device. With several, a request is served by the GPU on which its
// output lies, and kernels touch the memory of other GPUs where they are told to.
//
// Order among GPUs. A thread's work on one GPU is a stream, and done in order. A call in which
// GPU G is to touch memory of GPU H puts two marks into it: before, G waits for all that H has
// been asked; after, H waits for G. So whatever touches H's memory is in order with H's own stream,
// and a call that stays at home waits for nobody.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gpu/cuda/addresses.hpp"
#include "gpu/cuda/gpu.hpp"
#include "gpu/cuda/training.hpp"

namespace gossamer::gpu::cuda {

/// Errors of CUDA throw std::runtime_error, with the GPU's name where there are several; memory
/// that is short, std::bad_alloc.
class CudaDevice final : public Device {
 public:
  /// The GPUs are there, fit, and reach each other (discovery). Throws as above.
  CudaDevice(const std::vector<GpuInfo>& gpus, BlasFunctions blas);

  int gpu_count() const override { return static_cast<int>(gpus_.size()); }
  int gpu_of(const void* memory) const override { return static_cast<int>(home_of(memory)); }
  void* allocate(std::size_t bytes, int gpu_index = 0) override;
  void release(void* memory) override;
  void upload(void* device, const void* host, std::size_t bytes) override;
  void download(void* host, const void* device, std::size_t bytes) override;
  bool host_accessible() const override { return false; }
  MemoryInfo memory_info(int gpu_index = 0) override;
  void* allocate_host(std::size_t bytes) override;
  void release_host(void* memory) override;
  void finish() override;
  void begin_download(void* host, const void* device, std::size_t bytes,
                      std::function<void()> done) override;
  void begin_upload(void* device, const void* host, std::size_t bytes,
                    std::function<void()> done) override;
  std::string description() const override;

  void mix(std::span<const BasicMixRequest<float>> requests) override;
  void mix(std::span<const BasicMixRequest<double>> requests) override;
  void axpy(std::span<const AxpyRequest<float>> requests) override;
  void axpy(std::span<const AxpyRequest<double>> requests) override;
  void add_difference(std::span<const DifferenceRequest<float>> requests) override;
  void add_difference(std::span<const DifferenceRequest<double>> requests) override;
  void scale(std::span<const ScaleRequest<float>> requests) override;
  void scale(std::span<const ScaleRequest<double>> requests) override;
  void divide(std::span<const DivideRequest<float>> requests) override;
  void divide(std::span<const DivideRequest<double>> requests) override;
  void copy(std::span<const CopyRequest<float>> requests) override;
  void copy(std::span<const CopyRequest<double>> requests) override;
  void fill(std::span<const FillRequest<float>> requests) override;
  void fill(std::span<const FillRequest<double>> requests) override;
  void to_bf16(std::span<const Bf16Request> requests) override;
  void from_bf16(std::span<const Bf16Request> requests) override;
  void to_int8(std::span<const Int8Request> requests) override;
  void from_int8(std::span<const Int8Request> requests) override;
  void to_signs(std::span<const SignRequest> requests) override;
  void from_signs(std::span<const SignRequest> requests) override;
  void largest(std::span<const LargestRequest> requests) override;
  void add_placed(std::span<const PlacedRequest> requests) override;
  void sample(std::span<const SampledRequest> requests) override;
  void add_sampled(std::span<const SampledRequest> requests) override;
  void check_range(std::span<const RangeCheckRequest> requests) override;
  void integers(std::span<const RandomRequest<std::uint32_t>> requests) override;
  void uniforms(std::span<const RandomRequest<float>> requests) override;
  void dot(std::span<ReduceRequest<float>> requests) override;
  void dot(std::span<ReduceRequest<double>> requests) override;
  void squared_distance(std::span<ReduceRequest<float>> requests) override;
  void squared_distance(std::span<ReduceRequest<double>> requests) override;
  void sketch(std::span<const SketchRequest<float>> requests) override;
  void sketch(std::span<const SketchRequest<double>> requests) override;

  void step(const Task& task, std::span<const Job<float>> jobs) override;
  void step(const Task& task, std::span<const Job<double>> jobs) override;
  void gradient(const Task& task, std::span<const Job<float>> jobs) override;
  void gradient(const Task& task, std::span<const Job<double>> jobs) override;
  void evaluate(const Task& task, std::span<const Job<float>> jobs) override;
  void evaluate(const Task& task, std::span<const Job<double>> jobs) override;
  void update(const UpdateRule& rule, std::span<const UpdateJob<float>> jobs) override;
  void update(const UpdateRule& rule, std::span<const UpdateJob<double>> jobs) override;

 private:
  /// (first, second): two GPUs, one of which waits for the other.
  using Pairs = std::set<std::pair<std::size_t, std::size_t>>;
  /// Which GPU serves which requests of a call (their places in it), and which GPU G touches
  /// memory of H: (H, G).
  struct Shares {
    std::vector<std::vector<std::size_t>> of_gpu;
    Pairs visits;
  };

  /// The GPU that `memory` is on.
  std::size_t home_of(const void* memory) const {
    return gpus_.size() == 1 ? 0 : addresses_.gpu_of(memory);
  }
  template <class Request>
  Shares share(std::span<Request> requests) const;
  /// For each pair: what the calling thread asks of the second GPU from now on comes after all
  /// that it has asked of the first.
  void order(const Pairs& pairs);
  /// call(), with the GPU's name in what it throws.
  template <class Call>
  auto on(std::size_t gpu, Call call) const;
  /// serve(GPU, requests) for each GPU that has some, in order with all else.
  template <class Request, class Serve>
  void serve(std::span<Request> requests, Serve serve);
  template <class Real>
  void train(const Task& task, std::span<const Job<Real>> jobs, Work work);

  BlasFunctions blas_;
  std::vector<std::unique_ptr<Gpu>> gpus_;
  Addresses addresses_;  // only where there are several GPUs
};

}  // namespace gossamer::gpu::cuda
