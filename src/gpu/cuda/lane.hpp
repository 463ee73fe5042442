// A thread's own way through the GPU: its stream, and all that it reuses from call to call.
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "gpu/cuda/products.hpp"
#include "gpu/cuda/ring.hpp"
#include "gpu/cuda/runtime.hpp"

namespace gossamer::gpu::cuda {

class PlanCache;

/// One thread at a time, with its GPU current. What is asked of its stream is done in order.
class Lane {
 public:
  /// `blas` and `capturing` outlive it.
  Lane(const BlasFunctions& blas, std::mutex& capturing);
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  cudaStream_t stream() const { return stream_.get(); }
  Ring& ring() { return ring_; }
  Products& products();
  PlanCache& plans() { return *plans_; }
  /// Recorded anew each time that another stream shall wait for this one.
  cudaEvent_t mark() const { return mark_.get(); }
  /// Held while a stream of the GPU captures a graph: nobody may wait for the whole GPU then.
  std::mutex& capturing() const { return capturing_; }
  void finish() { GOSSAMER_CUDA(cudaStreamSynchronize, stream()); }

  /// Memory of the GPU for one call; the next call writes over it. Never part of a graph.
  void* scratch(std::size_t bytes);
  /// `bytes` of the GPU, here in pinned memory. Waits. Valid until the next call.
  const void* fetch(const void* device, std::size_t bytes);

 private:
  const BlasFunctions& blas_;
  std::mutex& capturing_;
  Stream stream_ = make_stream();
  Event mark_ = make_event();
  Ring ring_{stream_.get()};
  DeviceBuffer scratch_;
  PinnedBuffer fetched_;
  std::optional<Products> products_;
  std::unique_ptr<PlanCache> plans_;
};

}  // namespace gossamer::gpu::cuda
