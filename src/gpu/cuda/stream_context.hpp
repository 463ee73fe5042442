// The stream of one thread on one GPU, and everything that it reuses from call to call.
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "gpu/cuda/blas/products.hpp"
#include "gpu/cuda/memory/upload_ring.hpp"
#include "gpu/cuda/runtime.hpp"

namespace gossamer::gpu::cuda {

class PlanCache;

/// Thread: one, with its GPU current. The stream does its work in order.
class StreamContext {
 public:
  /// `blas` and `capturing` outlive the context.
  StreamContext(const BlasFunctions& blas, Urgency urgency, std::mutex& capturing);
  ~StreamContext();
  StreamContext(const StreamContext&) = delete;
  StreamContext& operator=(const StreamContext&) = delete;

  cudaStream_t stream() const { return stream_.get(); }
  UploadRing& uploads() { return uploads_; }
  Products& products();
  PlanCache& plans() { return *plans_; }
  /// The event that other streams wait for; recorded anew for each such wait.
  cudaEvent_t event() const { return event_.get(); }
  /// Held while a stream of the GPU captures a graph: no thread may wait for the whole GPU then.
  std::mutex& capturing() const { return capturing_; }
  void finish() { GOSSAMER_CUDA(cudaStreamSynchronize, stream()); }

  /// Memory of the GPU for one call; the next call overwrites it. Never part of a graph.
  void* scratch(std::size_t bytes);
  /// Copies `bytes` of the GPU's memory to pinned memory and waits. Valid until the next call.
  const void* fetch(const void* device, std::size_t bytes);

 private:
  const BlasFunctions& blas_;
  std::mutex& capturing_;
  Stream stream_;
  Event event_ = make_event();
  UploadRing uploads_{stream_.get()};
  DeviceBuffer scratch_;
  PinnedBuffer fetched_;
  std::optional<Products> products_;
  std::unique_ptr<PlanCache> plans_;
};

}  // namespace gossamer::gpu::cuda
