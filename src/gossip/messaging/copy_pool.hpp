// The pool of outgoing copies: copies of values that may change while links still read them.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "gossip/row.hpp"
#include "gpu/device.hpp"
#include "gpu/device_rows.hpp"

namespace gossamer::gossip {

/// A copy is free for reuse when no lease on it is out. The pool never shrinks: it holds as many
/// copies of a length as were leased at the same time. Thread: the scheduler's.
class CopyPool {
 public:
  /// Both outlive the pool.
  CopyPool(Scheduler& scheduler, gpu::Device& device) : scheduler_(scheduler), device_(device) {}

  /// A copy of `values`, in device memory beside them. The caller takes a lease before the next
  /// call; the reference stays valid as long as the pool.
  LeasedRow& copy(std::span<const float> values);

 private:
  struct Copy {
    gpu::DeviceRows<float> memory;
    LeasedRow row;
  };
  LeasedRow& free_copy(std::span<const float> values);
  int gpu_of(std::span<const float> values) const;

  Scheduler& scheduler_;
  gpu::Device& device_;
  std::vector<std::unique_ptr<Copy>> copies_;
};

}  // namespace gossamer::gossip
