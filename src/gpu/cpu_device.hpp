// The CPU as a device. A peer's whole training step runs on one thread, so that its working set
// stays in that core's cache; a small pool of threads shares out the peers. Mixing goes block by
// block over all peers.
#pragma once

#include <memory>

#include "gpu/device.hpp"

namespace gossamer::gpu {

/// Thread: any, several at once (a training batch on one, mixing on another). One caller at a time
/// gets the pool; the others work on their own thread. An operation is done when its call returns,
/// and its result has the same bits for any number of threads.
template <class Real>
class BasicCpuDevice : public BasicDevice<Real> {
 public:
  /// `threads` ≥ 1: threads that work at a time, the caller's included.
  explicit BasicCpuDevice(int threads);
  ~BasicCpuDevice() override;

  int threads() const;

  void* allocate(std::size_t bytes, int gpu_index = 0) override;
  void release(void* memory) noexcept override;
  MemoryInfo memory_info(int gpu_index = 0) override;
  SharedMemory* share() override;
  bool host_accessible() const override { return true; }
  void* allocate_host(std::size_t bytes) override { return allocate(bytes); }
  void release_host(void* memory) noexcept override { release(memory); }
  void upload(void* device, const void* host, std::size_t bytes) override;
  void download(void* host, const void* device, std::size_t bytes) override;
  void begin_upload(void* device, const void* host, std::size_t bytes, CopyDone done) override;
  void begin_download(void* host, const void* device, std::size_t bytes, CopyDone done) override;
  void finish() override {}

  void execute(const BasicRequests<Real>& requests) override;
  void train(const Task& task, Pass pass, std::span<const Job<Real>> jobs) override;
  void train_part(const Task& task, PartPass pass, std::span<const PartJob<Real>> jobs) override;
  void update(const UpdateRule& rule, std::span<const UpdateJob<Real>> jobs) override;
  std::string description() const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};
using CpuDevice = BasicCpuDevice<float>;

}  // namespace gossamer::gpu
