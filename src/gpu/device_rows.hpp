// Rows in a device's memory: one row a peer, as one matrix, or as one on each of the device's
// parts.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/rows.hpp"
#include "gpu/device.hpp"

namespace gossamer::gpu {

/// `count` rows of `length` values each, zero at first, each at a 64-byte boundary, those of a part
/// at equal distances. Move-only; rows stay where they are for the object's life. The device
/// outlives it. Thread: none of its own.
template <class Real>
class DeviceRows {
 public:
  DeviceRows() = default;

  /// Spread over the device's parts in contiguous blocks, as evenly as may be: row i is on part ⌊i
  /// · parts / count⌋. `offset` values of padding before each row: 0 except in the tests that show
  /// that alignment cannot change bits. Throws std::bad_alloc when the device has too little
  /// memory.
  DeviceRows(Memory& device, std::size_t count, std::size_t length, std::size_t offset = 0)
      : DeviceRows(device, 0, static_cast<std::size_t>(device.parts()), count, length, offset) {}
  /// All on one part.
  static DeviceRows on_part(Memory& device, int part, std::size_t count, std::size_t length) {
    return DeviceRows(device, part, 1, count, length, 0);
  }
  ~DeviceRows() {
    for (Real* block : blocks_) device_->release(block);
  }
  DeviceRows(DeviceRows&& other) noexcept { swap(other); }
  DeviceRows& operator=(DeviceRows&& other) noexcept {
    DeviceRows(std::move(other)).swap(*this);
    return *this;
  }

  /// What such rows take.
  static std::size_t bytes(std::size_t count, std::size_t length, std::size_t offset = 0) {
    return count * stride(length + offset) * sizeof(Real);
  }
  /// How many of `count` rows are on a part of `parts`.
  static std::size_t count_on(std::size_t part, std::size_t parts, std::size_t count) {
    return first_on(part + 1, parts, count) - first_on(part, parts, count);
  }

  std::size_t count() const { return count_; }
  std::size_t length() const { return length_; }

  std::span<Real> row(std::size_t index) const {
    GOSSAMER_CHECK(index < count_, "row index out of range");
    if (blocks_.empty()) return {};  // rows of no values
    const std::size_t block = index * blocks_.size() / count_;
    return {blocks_[block] + (index - first_on(block, blocks_.size(), count_)) * stride_ + offset_,
            length_};
  }

 private:
  DeviceRows(Memory& device, int first_part, std::size_t parts, std::size_t count,
             std::size_t length, std::size_t offset)
      : DeviceRows() {  // from here on, what is allocated is released, whatever happens
    device_ = &device, count_ = count, length_ = length, offset_ = offset,
    stride_ = stride(length + offset);
    if (bytes(count, length, offset) == 0) parts = 0;
    blocks_.assign(parts, nullptr);
    for (std::size_t part = 0; part < parts; ++part)
      if (const std::size_t rows = count_on(part, parts, count); rows > 0)
        blocks_[part] = static_cast<Real*>(
            device.allocate(bytes(rows, length, offset), first_part + static_cast<int>(part)));
  }

  static std::size_t stride(std::size_t values) {
    constexpr std::size_t per_line = kRowAlignment / sizeof(Real);
    return (values + per_line - 1) / per_line * per_line;
  }
  /// ⌈part · count / parts⌉: the first row i with ⌊i · parts / count⌋ = part.
  static std::size_t first_on(std::size_t part, std::size_t parts, std::size_t count) {
    return (part * count + parts - 1) / parts;
  }

  void swap(DeviceRows& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(blocks_, other.blocks_);
    std::swap(count_, other.count_);
    std::swap(length_, other.length_);
    std::swap(offset_, other.offset_);
    std::swap(stride_, other.stride_);
  }

  Memory* device_ = nullptr;
  std::vector<Real*> blocks_;  // by part; null where it has no row
  std::size_t count_ = 0, length_ = 0, offset_ = 0, stride_ = 0;
};

}  // namespace gossamer::gpu
