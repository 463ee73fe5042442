// Rows in a device's memory: one row a peer, as one matrix.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "base/check.hpp"
#include "base/rows.hpp"
#include "gpu/device.hpp"

namespace gossamer::gpu {

/// `count` rows of `length` values each, zero at first, each at a 64-byte boundary, at equal distances. Move-only; rows stay
/// where they are for the object's life. The device outlives it. Thread: none of its own.
template <class Real>
class DeviceRows {
 public:
  DeviceRows() = default;

  /// `offset` values of padding before each row: 0 except in the tests that show that alignment cannot change bits.
  /// Throws std::bad_alloc when the device has too little memory.
  DeviceRows(Memory& device, std::size_t count, std::size_t length, std::size_t offset = 0)
      : device_(&device), count_(count), length_(length), offset_(offset), stride_(stride(length + offset)) {
    if (bytes(count, length, offset) > 0) data_ = static_cast<Real*>(device.allocate(bytes(count, length, offset)));
  }
  ~DeviceRows() {
    if (data_ != nullptr) device_->release(data_);
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

  std::size_t count() const { return count_; }
  std::size_t length() const { return length_; }

  std::span<Real> row(std::size_t index) const {
    GOSSAMER_CHECK(index < count_, "row index out of range");
    return {data_ + index * stride_ + offset_, length_};
  }

 private:
  static std::size_t stride(std::size_t values) {
    constexpr std::size_t per_line = kRowAlignment / sizeof(Real);
    return (values + per_line - 1) / per_line * per_line;
  }

  void swap(DeviceRows& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    std::swap(length_, other.length_);
    std::swap(offset_, other.offset_);
    std::swap(stride_, other.stride_);
  }

  Memory* device_ = nullptr;
  Real* data_ = nullptr;
  std::size_t count_ = 0, length_ = 0, offset_ = 0, stride_ = 0;
};

}  // namespace gossamer::gpu
