#include "gossip/engine/peer_memory.hpp"

namespace gossamer::gossip {

PeerMemory::PeerMemory(gpu::Memory& device, const std::vector<RowSpec>& rows,
                       const MemoryLayout& layout, const std::vector<int>& nodes,
                       const Initialise& initialise)
    : device_(device) {
  const auto allocate = [&](std::size_t count, std::size_t length) {
    return gpu::DeviceRows<float>(device, count, length, layout.row_offset);
  };
  for (const RowSpec& row : rows)
    fronts_.push_back(allocate(nodes.size(), row.length(layout.length)));
  // Before the other rows are allocated: the host's copy of one row then adds nothing to the peak.
  set_initial_values(rows, layout.length, nodes, initialise);
  for (const RowSpec& row : rows)
    backs_.push_back(allocate(row.mixed ? nodes.size() : 0, row.length(layout.length)));
  if (layout.gradient) gradients_ = allocate(nodes.size(), layout.length);
  for (std::size_t k = 0; k < layout.state_rows; ++k)
    states_.push_back(allocate(nodes.size(), layout.length));
}

void PeerMemory::set_initial_values(const std::vector<RowSpec>& rows, std::size_t length,
                                    const std::vector<int>& nodes, const Initialise& initialise) {
  std::vector<float> parameters(length);
  for (std::size_t index = 0; index < nodes.size(); ++index)
    for (std::size_t k = 0; k < rows.size(); ++k) {
      const std::span<float> row = fronts_[k].row(index);
      const std::vector<float> extra(rows[k].extra, rows[k].extra_initial);
      device_.upload(row.data() + row.size() - extra.size(), extra.data(),
                     extra.size() * sizeof(float));
      if (rows[k].initial != RowSpec::Initial::parameters) continue;
      initialise(nodes[index], parameters);
      device_.upload(row.data(), parameters.data(), parameters.size() * sizeof(float));
    }
}

NodeMemory PeerMemory::of(std::size_t index) const {
  NodeMemory memory;
  for (std::size_t k = 0; k < fronts_.size(); ++k) {
    memory.front.push_back(fronts_[k].row(index));
    memory.back.push_back(backs_[k].count() > 0 ? backs_[k].row(index) : std::span<float>());
  }
  if (gradients_.count() > 0) memory.gradient = gradients_.row(index);
  for (const auto& rows : states_) memory.state.push_back(rows.row(index));
  return memory;
}

int PeerMemory::gpu_of(std::size_t index) const {
  return device_.gpu_of(fronts_.front().row(index).data());
}

}  // namespace gossamer::gossip
