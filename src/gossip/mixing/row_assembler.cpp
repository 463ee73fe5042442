#include "gossip/mixing/row_assembler.hpp"

namespace gossamer::gossip {

RowAssembler::RowAssembler(gpu::Device& device, Inbox& inbox, int gpu_index, std::size_t length,
                           int from, Listener& listener)
    : device_(device),
      inbox_(inbox),
      gpu_index_(gpu_index),
      length_(length),
      from_(from),
      listener_(listener) {
  inbox_.consumer = this;
}

void RowAssembler::arrived() {
  for (; !inbox_.chunks.empty(); inbox_.chunks.pop_front()) {
    const Chunk& chunk = inbox_.chunks.front();
    if (!assembling_) {
      // Two buffers take turns, unless a mix still reads the older one.
      assembling_ = spare_ && spare_.use_count() == 1
                        ? std::move(spare_)
                        : std::make_shared<BufferedRow>(device_, gpu_index_, length_);
    }
    assembling_->round = chunk.header.round;
    const gpu::CopyRequest<float> copy{chunk.values.data(),
                                       assembling_->row.row(0).data() + chunk.header.offset,
                                       chunk.values.size()};
    device_.execute(std::span(&copy, 1));
    if (chunk.header.offset + chunk.values.size() == chunk.header.total) {
      spare_ = std::move(newest_);
      newest_ = std::move(assembling_);
      listener_.on_whole_row(from_);
    }
  }
}

}  // namespace gossamer::gossip
