#include "gpu/cuda/addresses.hpp"

#include <mutex>

#include "base/check.hpp"

namespace gossamer::gpu::cuda {

void Addresses::add(const void* memory, std::size_t bytes, std::size_t gpu) {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  const std::lock_guard lock(mutex_);
  blocks_[begin] = {begin, begin + bytes, gpu};
}

void Addresses::remove(const void* memory) {
  const std::lock_guard lock(mutex_);
  GOSSAMER_CHECK(blocks_.erase(reinterpret_cast<std::uintptr_t>(memory)) == 1,
                 "what is released was allocated");
}

std::size_t Addresses::Reader::gpu_of(const void* memory) {
  const auto at = reinterpret_cast<std::uintptr_t>(memory);
  if (at >= last_.begin && at < last_.end) return last_.gpu;
  const auto next = addresses_.blocks_.upper_bound(at);
  GOSSAMER_CHECK(next != addresses_.blocks_.begin() && at < std::prev(next)->second.end,
                 "what a GPU is asked to work on is its device's memory");
  last_ = std::prev(next)->second;
  return last_.gpu;
}

}  // namespace gossamer::gpu::cuda
