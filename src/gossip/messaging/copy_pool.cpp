#include "gossip/messaging/copy_pool.hpp"

namespace gossamer::gossip {

LeasedRow& CopyPool::copy(std::span<const float> values) {
  LeasedRow& row = free_copy(values);
  const gpu::CopyRequest<float> request{values.data(), row.values().data(), values.size()};
  device_.execute(std::span(&request, 1));
  return row;
}

LeasedRow& CopyPool::free_copy(std::span<const float> values) {
  for (auto& copy : copies_) {
    LeasedRow& row = copy->row;
    if (row.values().size() != values.size() || gpu_of(row.values()) != gpu_of(values)) continue;
    if (!row.leased()) return row;
  }
  Copy& made = *copies_.emplace_back(std::make_unique<Copy>());
  made.memory = gpu::DeviceRows<float>::on_gpu(device_, gpu_of(values), 1, values.size());
  made.row.attach(scheduler_, made.memory.row(0));
  return made.row;
}

int CopyPool::gpu_of(std::span<const float> values) const { return device_.gpu_of(values.data()); }

}  // namespace gossamer::gossip
