#include "gpu/cuda/training/plan_cache.hpp"

#include <algorithm>
#include <bit>
#include <functional>

namespace gossamer::gpu::cuda {

Plan* PlanCache::find(const std::string& key) {
  const std::size_t hash = std::hash<std::string>{}(key);
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry)
    if (entry->hash == hash && entry->key == key) {
      entries_.splice(entries_.begin(), entries_, entry);
      return entry->plan.get();
    }
  return nullptr;
}

Plan* PlanCache::insert(std::string key, std::unique_ptr<Plan> plan) {
  const std::size_t hash = std::hash<std::string>{}(key);
  entries_.push_front({hash, std::move(key), std::move(plan)});
  if (entries_.size() > kMost) {
    if (entries_.back().plan->graph)
      GOSSAMER_CUDA(cudaStreamSynchronize, stream_);  // the graph may be running
    give(std::move(entries_.back().plan->memory));
    entries_.pop_back();
  }
  return entries_.front().plan.get();
}

DeviceBuffer PlanCache::take(std::size_t bytes) {
  const auto fits = std::ranges::find_if(
      free_, [&](const DeviceBuffer& memory) { return memory.bytes() >= bytes; });
  if (fits == free_.end())
    return DeviceBuffer(std::bit_ceil(std::max<std::size_t>(bytes, 1 << 14)));
  DeviceBuffer memory = std::move(*fits);
  free_.erase(fits);
  return memory;
}

void PlanCache::give(DeviceBuffer memory) {
  const auto at = std::ranges::lower_bound(free_, memory.bytes(), {},
                                           &DeviceBuffer::bytes);  // sorted, the smallest first
  free_.insert(at, std::move(memory));
}

void* PlanCache::workspace(std::size_t bytes) {
  if (bytes <= workspace_.bytes()) return workspace_.data();
  GOSSAMER_CUDA(cudaStreamSynchronize, stream_);
  entries_.clear();
  free_.clear();
  workspace_ = {};
  workspace_ = DeviceBuffer(bytes);
  return workspace_.data();
}

}  // namespace gossamer::gpu::cuda
