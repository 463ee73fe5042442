// Rows in a device's memory: one row per peer, as one matrix on each GPU of the device.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/rows.hpp"
#include "gpu/memory.hpp"

namespace gossamer::gpu {

/// `count` rows of `length` values each, initially zero, each at a 64-byte boundary; the rows of
/// one GPU lie at equal distances. Move-only; the addresses of rows never change. The device
/// outlives it. Thread: any; not synchronised.
template <class Real>
class DeviceRows {
 public:
  DeviceRows() = default;

  /// Rows spread evenly over the device's GPUs in contiguous blocks: row i is on GPU
  /// ⌊i · gpus / count⌋. `offset` is the number of values of padding before each row: 0 except in
  /// tests that alignment cannot change bits. Throws std::bad_alloc if memory is short.
  DeviceRows(Memory& device, std::size_t count, std::size_t length, std::size_t offset = 0)
      : DeviceRows(device, 0, static_cast<std::size_t>(device.gpu_count()), count, length, offset) {
  }
  /// All rows on one GPU.
  static DeviceRows on_gpu(Memory& device, int gpu_index, std::size_t count, std::size_t length) {
    return DeviceRows(device, gpu_index, 1, count, length, 0);
  }
  ~DeviceRows() {
    for (Real* block : blocks_) device_->release(block);
  }
  DeviceRows(DeviceRows&& other) noexcept { swap(other); }
  DeviceRows& operator=(DeviceRows&& other) noexcept {
    DeviceRows(std::move(other)).swap(*this);
    return *this;
  }

  /// Bytes of such rows.
  static std::size_t bytes(std::size_t count, std::size_t length, std::size_t offset = 0) {
    return count * stride(length + offset) * sizeof(Real);
  }
  /// Number of the `count` rows that are on GPU `gpu_index` of `gpus`.
  static std::size_t count_on(std::size_t gpu_index, std::size_t gpus, std::size_t count) {
    return first_on(gpu_index + 1, gpus, count) - first_on(gpu_index, gpus, count);
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
  DeviceRows(Memory& device, int first_gpu, std::size_t gpus, std::size_t count, std::size_t length,
             std::size_t offset)
      : DeviceRows() {  // the destructor releases the blocks even if an allocation throws
    device_ = &device, count_ = count, length_ = length, offset_ = offset,
    stride_ = stride(length + offset);
    if (bytes(count, length, offset) == 0) gpus = 0;
    blocks_.assign(gpus, nullptr);
    for (std::size_t gpu_index = 0; gpu_index < gpus; ++gpu_index)
      if (const std::size_t rows = count_on(gpu_index, gpus, count); rows > 0)
        blocks_[gpu_index] = static_cast<Real*>(
            device.allocate(bytes(rows, length, offset), first_gpu + static_cast<int>(gpu_index)));
  }

  static std::size_t stride(std::size_t values) {
    constexpr std::size_t per_line = kRowAlignment / sizeof(Real);
    return (values + per_line - 1) / per_line * per_line;
  }
  /// ⌈gpu_index · count / gpus⌉: the first row i with ⌊i · gpus / count⌋ = gpu_index.
  static std::size_t first_on(std::size_t gpu_index, std::size_t gpus, std::size_t count) {
    return (gpu_index * count + gpus - 1) / gpus;
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
  std::vector<Real*> blocks_;  // by GPU index; null if the GPU has no row
  std::size_t count_ = 0, length_ = 0, offset_ = 0, stride_ = 0;
};

}  // namespace gossamer::gpu
