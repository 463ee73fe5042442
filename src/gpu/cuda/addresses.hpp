// Which GPU an address belongs to: every block of a device's memory, by where it lies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <shared_mutex>

namespace gossamer::gpu::cuda {

/// Any thread.
class Addresses {
  struct Block {
    std::uintptr_t begin = 0, end = 0;
    std::size_t gpu = 0;
  };

 public:
  void add(const void* memory, std::size_t bytes, std::size_t gpu);
  void remove(const void* memory);
  std::size_t gpu_of(const void* memory) const { return Reader(*this).gpu_of(memory); }

  /// For many addresses in a row: nothing is added or removed while it lives.
  class Reader {
   public:
    explicit Reader(const Addresses& addresses) : addresses_(addresses), lock_(addresses.mutex_) {}
    /// `memory` lies in one of the blocks.
    std::size_t gpu_of(const void* memory);

   private:
    const Addresses& addresses_;
    std::shared_lock<std::shared_mutex> lock_;
    Block last_;  // what follows is mostly in the same block
  };

 private:
  mutable std::shared_mutex mutex_;
  std::map<std::uintptr_t, Block> blocks_;  // by begin
};

}  // namespace gossamer::gpu::cuda
