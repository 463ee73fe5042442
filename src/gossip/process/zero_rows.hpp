// Rows of zeros, for mixes that take differences to zero.
#pragma once

#include <span>

#include "base/check.hpp"
#include "gpu/device.hpp"
#include "gpu/device_rows.hpp"

namespace gossamer::gossip {

/// One row of zeros on each GPU, made when first used; all mixes of a process have rows of one
/// length. Thread: the scheduler's.
class ZeroRows {
 public:
  explicit ZeroRows(gpu::Device& device) : device_(device) {}

  /// As many zeros as x has values, on x's GPU.
  std::span<const float> like(std::span<const float> x) {
    if (rows_.count() == 0)
      rows_ =
          gpu::DeviceRows<float>(device_, static_cast<std::size_t>(device_.gpu_count()), x.size());
    GOSSAMER_CHECK(rows_.length() == x.size(),
                   "rows that are mixed with other than differences are of one length");
    return rows_.row(static_cast<std::size_t>(device_.gpu_of(x.data())));
  }

 private:
  gpu::Device& device_;
  gpu::DeviceRows<float> rows_;
};

}  // namespace gossamer::gossip
