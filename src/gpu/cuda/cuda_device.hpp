// One card as a device.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "gpu/cuda/blas.hpp"
#include "gpu/cuda/cuda.hpp"
#include "gpu/cuda/lane.hpp"
#include "gpu/cuda/transfers.hpp"

namespace gossamer::gpu::cuda {

/// Each calling thread has a lane of its own, made at its first call. Errors of CUDA throw std::runtime_error; memory that
/// is short, std::bad_alloc.
class CudaDevice final : public Device {
 public:
  /// The card is there and fit (survey). Throws as above.
  CudaDevice(CardInfo card, BlasFunctions blas);
  ~CudaDevice() override;

  void* allocate(std::size_t bytes) override;
  void release(void* memory) override;
  void upload(void* device, const void* host, std::size_t bytes) override;
  void download(void* host, const void* device, std::size_t bytes) override;
  bool host_accessible() const override { return false; }
  MemoryInfo memory_info() override;
  void* allocate_host(std::size_t bytes) override;
  void release_host(void* memory) override;
  void finish() override;
  void begin_download(void* host, const void* device, std::size_t bytes, std::function<void()> done) override;
  void begin_upload(void* device, const void* host, std::size_t bytes, std::function<void()> done) override;
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
  void integers(std::span<const RandomRequest<std::uint32_t>> requests) override;
  void uniforms(std::span<const RandomRequest<float>> requests) override;
  void dot(std::span<ReduceRequest<float>> requests) override;
  void dot(std::span<ReduceRequest<double>> requests) override;
  void squared_distance(std::span<ReduceRequest<float>> requests) override;
  void squared_distance(std::span<ReduceRequest<double>> requests) override;
  void all_finite(std::span<FiniteRequest<float>> requests) override;
  void all_finite(std::span<FiniteRequest<double>> requests) override;
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
  void make_current() const { GOSSAMER_CUDA(cudaSetDevice, card_.index); }
  /// The calling thread's, with the card current.
  Lane& lane();
  std::size_t most_workspace() const;

  CardInfo card_;
  BlasFunctions blas_;
  std::mutex capturing_;  // Lane::capturing
  std::mutex mutex_;      // of lanes_
  std::map<std::thread::id, std::unique_ptr<Lane>> lanes_;
  std::unique_ptr<CopyStream> downloads_, uploads_;
};

}  // namespace gossamer::gpu::cuda
