// Which GPU an address belongs to: the blocks of a device's memory, by address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <shared_mutex>

namespace gossamer::gpu::cuda {

/// Thread: any.
class AddressMap {
  struct Block {
    std::uintptr_t begin = 0, end = 0;
    std::size_t gpu_index = 0;
  };

 public:
  void add(const void* memory, std::size_t bytes, std::size_t gpu_index);
  void remove(const void* memory);
  /// `memory` must lie in one of the blocks.
  std::size_t gpu_of(const void* memory) const { return Reader(*this).gpu_of(memory); }

  /// Looks up many addresses under one lock: no block is added or removed while a reader lives.
  class Reader {
   public:
    explicit Reader(const AddressMap& map) : map_(map), lock_(map.mutex_) {}
    /// `memory` must lie in one of the blocks.
    std::size_t gpu_of(const void* memory);

   private:
    const AddressMap& map_;
    std::shared_lock<std::shared_mutex> lock_;
    Block last_;  // the next address is mostly in the same block
  };

 private:
  mutable std::shared_mutex mutex_;
  std::map<std::uintptr_t, Block> blocks_;  // by begin
};

}  // namespace gossamer::gpu::cuda
