// The CPU as a device: a peer's whole training step runs on one thread, so that its working set
// stays in that core's cache; peers are shared out over a small pool. Mixing goes block by block
// over all peers.
#pragma once

#include <memory>
#include <span>

#include "gpu/device.hpp"

namespace gossamer::gpu {

/// Any thread may call, several at once (a training batch on one, a mix on another): one of them
/// gets the pool, the others work on their own thread. Calls return when all is done; every result
/// has the same bits whatever the number of threads.
class CpuDevice : public Device {
 public:
  /// `threads` ≥ 1 work at a time, the caller's among them.
  explicit CpuDevice(int threads);
  ~CpuDevice() override;

  int threads() const;

  void* allocate(std::size_t bytes, int gpu_index = 0) override;
  void release(void* memory) override;
  void upload(void* device, const void* host, std::size_t bytes) override;
  void download(void* host, const void* device, std::size_t bytes) override;
  bool host_accessible() const override { return true; }
  MemoryInfo memory_info(int gpu_index = 0) override;
  void* allocate_host(std::size_t bytes) override { return allocate(bytes); }
  void release_host(void* memory) override { release(memory); }
  void finish() override {}
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
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gossamer::gpu
