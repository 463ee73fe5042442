// Read access to rows in device memory, with a copy if the CPU cannot read that memory.
#pragma once

#include <vector>

#include "gpu/device.hpp"
#include "peer/setup/row_views.hpp"

namespace gossamer::peer {

/// Views in host memory of rows in device memory. Valid as long as this object, and the rows if
/// they were not copied.
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
