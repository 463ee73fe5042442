// Rows as the host reads them: where the device's memory is not the host's, a copy.
#pragma once

#include <vector>

#include "gpu/device.hpp"
#include "peer/log/metrics.hpp"

namespace gossamer::peer {

/// Views of rows in device memory, valid as long as this object and, where no copy was needed, the
/// rows.
class HostView {
 public:
  HostView(gpu::Memory& device, const RowViews& rows) : views_(rows) {
    if (device.host_accessible()) return;
    for (std::span<const float>& view : views_) {
      copies_.emplace_back(view.size());
      device.download(copies_.back().data(), view.data(), view.size_bytes());
      view = copies_.back();
    }
  }
  HostView(const HostView&) = delete;
  HostView& operator=(const HostView&) = delete;

  const RowViews& rows() const { return views_; }

 private:
  std::vector<std::vector<float>> copies_;
  RowViews views_;
};

}  // namespace gossamer::peer
