// A neighbour's rows where they are taken whole (policies deadline, stale and async): chunks are copied as they come, so that
// nobody's buffers are held, however late the row is wanted.
#pragma once

#include <functional>
#include <memory>

#include "gossip/exchange.hpp"
#include "gpu/device_rows.hpp"

namespace gossamer::gossip {

/// A whole row that has come from a neighbour, and its round, on a part of the device.
struct StagedRow {
  StagedRow(gpu::Memory& memory, int part, std::size_t length)
      : row(gpu::DeviceRows<float>::on_part(memory, part, 1, length)) {}
  Round round = 0;
  gpu::DeviceRows<float> row;
};

/// A neighbour's newest whole row, where the row x is that it is mixed into. Thread: the scheduler's.
class Stage final : public Inbox::Consumer {
 public:
  /// `on_row` is told when a row is whole. All outlive this object.
  Stage(gpu::Device& device, Inbox& inbox, int part, std::size_t length, std::function<void()> on_row);
  void arrived() override;
  /// Null until a whole row has come. It stays as it is while the pointer is held.
  std::shared_ptr<const StagedRow> newest() const { return newest_; }

 private:
  gpu::Device& device_;
  Inbox& inbox_;
  int part_;
  std::size_t length_;
  std::function<void()> on_row_;
  std::shared_ptr<StagedRow> assembling_, newest_, spare_;
};

}  // namespace gossamer::gossip
