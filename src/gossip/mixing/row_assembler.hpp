// The row assembler: puts a neighbour's chunks together to whole rows as they arrive, so that no
// buffer of a link is held, however late a mix wants the row.
#pragma once

#include <memory>

#include "gossip/messaging/inbox.hpp"
#include "gossip/mixing/neighbour_row.hpp"
#include "gpu/device.hpp"

namespace gossamer::gossip {

/// Memory: up to three rows on the GPU of the row x that they are mixed into: the newest, the one
/// being assembled, and one that a mix may still read. Thread: the scheduler's.
class RowAssembler final : public Inbox::Consumer {
 public:
  /// The mix that the rows are for.
  class Listener {
   public:
    virtual ~Listener() = default;
    /// A row of `from` is whole.
    virtual void on_whole_row(int from) = 0;
    /// Whether the mix under way waits for a row of `from`.
    virtual bool is_waiting_for(int from) const = 0;
  };

  /// `inbox` is that of peer `from`. All outlive this object.
  RowAssembler(gpu::Device& device, Inbox& inbox, int gpu_index, std::size_t length, int from,
               Listener& listener);
  void arrived() override;
  bool is_waiting() const override { return listener_.is_waiting_for(from_); }
  /// The newest whole row; null before the first. It does not change while the pointer is held.
  std::shared_ptr<const BufferedRow> newest() const { return newest_; }

 private:
  gpu::Device& device_;
  Inbox& inbox_;
  int gpu_index_;
  std::size_t length_;
  int from_;
  Listener& listener_;
  std::shared_ptr<BufferedRow> assembling_, newest_, spare_;
};

}  // namespace gossamer::gossip
