// What a lane keeps of training steps that it has seen: their addresses on the GPU, and the step
// as a captured graph. And the memory that they work in.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "gpu/cuda/runtime.hpp"

namespace gossamer::gpu::cuda {

/// A kind of training step for certain peers, as it lies on the GPU.
struct Plan {
  virtual ~Plan() = default;
  DeviceBuffer memory;
  GraphExecutable graph;  ///< none before the step has been captured
  bool ran = false;       ///< once, kernel by kernel: after that it may be captured (libraries are
                          ///< loaded by then)
};

/// One thread. Memory that a plan leaves is written over by later work of the same stream only.
class PlanCache {
 public:
  explicit PlanCache(cudaStream_t stream) : stream_(stream) {}

  /// Null where there is none. `key` is all that the step depends on, byte by byte.
  Plan* find(const std::string& key);
  /// The one that was not used for longest leaves when there are more than kMost; if it was a
  /// graph, this waits.
  Plan* insert(std::string key, std::unique_ptr<Plan> plan);

  /// Memory of at least `bytes` for a plan, one that another one has left where there is.
  DeviceBuffer take(std::size_t bytes);
  void give(DeviceBuffer memory);

  /// The workspace of all plans, of at least `bytes`. When it moves, the plans that know its place
  /// leave. Throws std::bad_alloc.
  void* workspace(std::size_t bytes);
  std::size_t workspace_bytes() const { return workspace_.bytes(); }

  static constexpr std::size_t kMost = 64;

 private:
  struct Entry {
    std::size_t hash;
    std::string key;
    std::unique_ptr<Plan> plan;
  };
  cudaStream_t stream_;
  DeviceBuffer workspace_;
  std::vector<DeviceBuffer> free_;
  std::list<Entry> entries_;  // the last used first
};

}  // namespace gossamer::gpu::cuda
