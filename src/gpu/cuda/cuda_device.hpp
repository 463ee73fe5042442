// One or several GPUs as a device. With several GPUs, a request is served by the GPU that holds its
// output, and kernels access the memory of other GPUs where a request names it.
//
// Order among GPUs. A thread's work on one GPU is a stream and is done in order. If a request
// served by GPU G touches memory of GPU H (visit_memory names it), the call records two events:
// before the work, G waits for all earlier work of H; after it, H waits for G. So every access to
// H's memory is ordered with H's own stream, and a call that touches one GPU waits for no other.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gpu/cuda/gpu.hpp"
#include "gpu/cuda/memory/address_map.hpp"

namespace gossamer::gpu::cuda {

/// Errors of CUDA throw std::runtime_error, with the GPU's name if there are several; short memory
/// throws std::bad_alloc.
template <class Real>
class CudaDevice final : public BasicDevice<Real> {
 public:
  /// The GPUs must exist, be usable, and reach each other (Discovery). Throws as above.
  CudaDevice(const std::vector<GpuInfo>& gpus, BlasFunctions blas);

  int gpu_count() const override { return static_cast<int>(gpus_.size()); }
  int gpu_of(const void* memory) const override {
    return gpus_.size() == 1 ? 0 : static_cast<int>(addresses_.gpu_of(memory));
  }
  void* allocate(std::size_t bytes, int gpu_index = 0) override;
  void release(void* memory) noexcept override;
  MemoryInfo memory_info(int gpu_index = 0) override;
  bool host_accessible() const override { return false; }
  void* allocate_host(std::size_t bytes) override;
  void release_host(void* memory) noexcept override;
  void upload(void* device, const void* host, std::size_t bytes) override;
  void download(void* host, const void* device, std::size_t bytes) override;
  void begin_upload(void* device, const void* host, std::size_t bytes, CopyDone done) override;
  void begin_download(void* host, const void* device, std::size_t bytes, CopyDone done) override;
  void give_way() override;
  std::shared_ptr<const void> mark() override;
  void wait(const std::shared_ptr<const void>& mark) override;
  void finish() override;

  void execute(const BasicRequests<Real>& requests) override;
  void train(const Task& task, Pass pass, std::span<const Job<Real>> jobs) override;
  void train_part(const Task& task, PartPass pass, std::span<const PartJob<Real>> jobs) override;
  void update(const UpdateRule& rule, std::span<const UpdateJob<Real>> jobs) override;
  std::string description() const override;

 private:
  /// (first, second): `second` waits for `first`. Both are GPU indices.
  using Dependencies = std::set<std::pair<std::size_t, std::size_t>>;
  /// How a call is shared out among the GPUs.
  struct Shares {
    std::vector<std::vector<std::size_t>> requests;  ///< by GPU: indices into the call's requests
    Dependencies owners;  ///< (H, G): a request served by G touches memory of H
  };

  template <class Request>
  Shares share(std::span<const Request> requests) const;
  /// Returns call(); an exception gets the GPU's name.
  template <class Call>
  auto on(std::size_t gpu_index, Call call) const;
  /// Calls serve(gpu_index, requests) for each GPU that serves some, ordered as explained above.
  template <class Request, class Serve>
  void serve_each(std::span<const Request> requests, Serve serve);

  BlasFunctions blas_;
  std::vector<std::unique_ptr<Gpu>> gpus_;
  AddressMap addresses_;  // empty if there is one GPU
};

}  // namespace gossamer::gpu::cuda
