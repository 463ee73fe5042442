// The row assembler: puts a neighbour's chunks together to whole rows as they arrive, so that no
// buffer of a link is held, however late a mix wants the row.
#pragma once

#include <functional>
#include <memory>

#include "gossip/messaging/inbox.hpp"
#include "gossip/mixing/neighbour_row.hpp"
#include "gpu/device.hpp"

namespace gossamer::gossip {

/// Memory: up to three rows on the GPU of the row x that they are mixed into: the newest, the one
/// being assembled, and one that a mix may still read. Thread: the scheduler's.
class RowAssembler final : public Inbox::Consumer {
 public:
  /// `on_row` is called when a row is whole. All outlive this object.
  RowAssembler(gpu::Device& device, Inbox& inbox, int gpu_index, std::size_t length,
               std::function<void()> on_row);
  void arrived() override;
  /// The newest whole row; null before the first. It does not change while the pointer is held.
  std::shared_ptr<const BufferedRow> newest() const { return newest_; }

 private:
  gpu::Device& device_;
  Inbox& inbox_;
  int gpu_index_;
  std::size_t length_;
  std::function<void()> on_row_;
  std::shared_ptr<BufferedRow> assembling_, newest_, spare_;
};

}  // namespace gossamer::gossip
