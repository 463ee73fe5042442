#include "gpu/cuda/memory/address_map.hpp"

#include <mutex>

#include "base/check.hpp"

namespace gossamer::gpu::cuda {

void AddressMap::add(const void* memory, std::size_t bytes, std::size_t gpu_index) {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  const std::lock_guard lock(mutex_);
  blocks_[begin] = {begin, begin + bytes, gpu_index};
}

void AddressMap::remove(const void* memory) {
  const std::lock_guard lock(mutex_);
  GOSSAMER_CHECK(blocks_.erase(reinterpret_cast<std::uintptr_t>(memory)) == 1,
                 "released memory was allocated before");
}

std::size_t AddressMap::Reader::gpu_of(const void* memory) {
  const auto at = reinterpret_cast<std::uintptr_t>(memory);
  if (at >= last_.begin && at < last_.end) return last_.gpu_index;
  const auto next = map_.blocks_.upper_bound(at);
  GOSSAMER_CHECK(next != map_.blocks_.begin() && at < std::prev(next)->second.end,
                 "a request's memory is memory of its device");
  last_ = std::prev(next)->second;
  return last_.gpu_index;
}

}  // namespace gossamer::gpu::cuda
