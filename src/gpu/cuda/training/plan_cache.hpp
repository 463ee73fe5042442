// The training steps that a stream has seen: their addresses on the GPU, the step as a captured
// graph, and the memory in which they work.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "gpu/cuda/runtime.hpp"

namespace gossamer::gpu::cuda {

/// One kind of training step for certain peers, laid out on the GPU.
struct Plan {
  virtual ~Plan() = default;
  DeviceBuffer memory;
  GraphExecutable graph;  ///< empty unless the step has been captured
  bool ran = false;       ///< The step ran once, kernel by kernel, which loads libraries; from then
                          ///< on it may be captured.
  bool captures = true;   ///< false: CUDA did not capture it, and it runs kernel by kernel
};

/// Thread: one. Memory of a removed plan is overwritten by later work of the same stream only.
class PlanCache {
 public:
  explicit PlanCache(cudaStream_t stream) : stream_(stream) {}

  /// The plan of a key, or null. The key holds everything that the step depends on, byte by byte.
  Plan* find(const std::string& key);
  /// Removes the least recently used plan if there are more than kMost, and waits for it if it has
  /// a graph.
  Plan* insert(std::string key, std::unique_ptr<Plan> plan);

  /// Memory of at least `bytes` for a plan, reused from a removed plan if possible.
  DeviceBuffer take(std::size_t bytes);
  void give(DeviceBuffer memory);

  /// The workspace of all plans, of at least `bytes`. If it moves, all plans are removed. Throws
  /// std::bad_alloc.
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
  std::list<Entry> entries_;  // the most recently used first
};

}  // namespace gossamer::gpu::cuda
