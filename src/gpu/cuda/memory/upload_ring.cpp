#include "gpu/cuda/memory/upload_ring.hpp"

#include <algorithm>
#include <bit>

namespace gossamer::gpu::cuda {

void UploadRing::grow(std::size_t segment) {
  GOSSAMER_CUDA(cudaStreamSynchronize, stream_);
  segment = std::max(kSegmentBytes, std::bit_ceil(segment));
  segment_ = used_ = 0;  // until there is memory: an allocation may throw
  current_ = 0;
  recorded_ = {};
  host_ = {};
  device_ = {};
  host_ = PinnedBuffer(kSegments * segment);
  device_ = DeviceBuffer(kSegments * segment);
  for (Event& event : filled_)
    if (!event) event = make_event();
  segment_ = segment;
}

void UploadRing::next_segment() {
  GOSSAMER_CUDA(cudaEventRecord, filled_[static_cast<std::size_t>(current_)].get(), stream_);
  recorded_[static_cast<std::size_t>(current_)] = true;
  current_ = (current_ + 1) % kSegments;
  const auto next = static_cast<std::size_t>(current_);
  if (recorded_[next]) GOSSAMER_CUDA(cudaEventSynchronize, filled_[next].get());
  used_ = 0;
}

UploadRing::Slot UploadRing::reserve(std::size_t bytes) {
  const std::size_t whole = rounded_up(bytes, 256);
  if (whole > segment_) grow(whole);
  if (used_ + whole > segment_) next_segment();
  const std::size_t at = static_cast<std::size_t>(current_) * segment_ + used_;
  used_ += whole;
  return {static_cast<std::byte*>(host_.data()) + at, static_cast<std::byte*>(device_.data()) + at,
          bytes};
}

void UploadRing::send(const Slot& slot, void* device) {
  if (slot.bytes > 0)
    GOSSAMER_CUDA(cudaMemcpyAsync, device, slot.host, slot.bytes, cudaMemcpyHostToDevice, stream_);
}

}  // namespace gossamer::gpu::cuda
