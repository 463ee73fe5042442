// Uploads of a call's small data (row addresses, samples, rates): the host writes it into pinned
// memory, and the stream copies it from there, so that neither the host nor the GPU waits for the
// other.
#pragma once

#include <array>
#include <cstddef>

#include "gpu/cuda/runtime.hpp"

namespace gossamer::gpu::cuda {

/// A ring buffer of four segments in pinned memory, mirrored on the GPU. Thread: one. The ring must
/// outlive its stream's work.
class UploadRing {
 public:
  explicit UploadRing(cudaStream_t stream) : stream_(stream) {}

  /// The same range on both sides, 256-byte aligned.
  struct Slot {
    std::byte* host = nullptr;
    std::byte* device = nullptr;
    std::size_t bytes = 0;
  };

  /// A slot with undefined content. The host may write its side until the next call. The GPU's side
  /// is valid until two more segments have been filled, so all data of one operation must be in one
  /// slot. Waits only if the GPU is three segments behind.
  Slot reserve(std::size_t bytes);
  /// Copies the host's side of the slot to the GPU's side, in the stream's order.
  void send(const Slot& slot) { send(slot, slot.device); }
  /// Copies the host's side of the slot to `device`, in the stream's order.
  void send(const Slot& slot, void* device);

  /// Largest slot that is reserved without growing the ring.
  static constexpr std::size_t kSegmentBytes = std::size_t{1} << 20;

 private:
  static constexpr int kSegments = 4;
  void grow(std::size_t segment);
  void next_segment();

  cudaStream_t stream_;
  PinnedBuffer host_;
  DeviceBuffer device_;
  std::array<Event, kSegments> filled_;
  std::array<bool, kSegments> recorded_ = {};
  std::size_t segment_ = 0, used_ = 0;
  int current_ = 0;
};

}  // namespace gossamer::gpu::cuda
