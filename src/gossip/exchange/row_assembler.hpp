// A neighbour's rows where they are taken whole (policies deadline, stale and async): chunks are
// copied as they come, so that nobody's buffers are held, however late the row is wanted.
#pragma once

#include <functional>
#include <memory>

#include "gossip/exchange/exchange.hpp"
#include "gpu/device_rows.hpp"

namespace gossamer::gossip {

/// A whole row that has come from a neighbour, and its round, on one GPU of the device.
struct BufferedRow {
  BufferedRow(gpu::Memory& memory, int gpu_index, std::size_t length)
      : row(gpu::DeviceRows<float>::on_gpu(memory, gpu_index, 1, length)) {}
  Round round = 0;
  gpu::DeviceRows<float> row;
};

/// A neighbour's newest whole row, where the row x is that it is mixed into. Thread: the
/// scheduler's.
class RowAssembler final : public Inbox::Consumer {
 public:
  /// `on_row` is told when a row is whole. All outlive this object.
  RowAssembler(gpu::Device& device, Inbox& inbox, int gpu_index, std::size_t length,
               std::function<void()> on_row);
  void arrived() override;
  /// Null until a whole row has come. It stays as it is while the pointer is held.
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
