// The way of small things to the GPU: what a call brings along (row addresses, samples, rates) is
// written into pinned memory and copied from there by the stream, so that neither the host nor the
// GPU waits for the other.
#pragma once

#include <array>
#include <cstddef>

#include "gpu/cuda/runtime.hpp"

namespace gossamer::gpu::cuda {

/// Pinned memory and its mirror on the GPU, used round and round in four segments. One thread;
/// must outlive its stream's work.
class Ring {
 public:
  explicit Ring(cudaStream_t stream) : stream_(stream) {}

  /// The same place on both sides, 256-byte aligned.
  struct Room {
    std::byte* host = nullptr;
    std::byte* device = nullptr;
    std::size_t bytes = 0;
  };

  /// Content: undefined. The host's side may be written until the next call, the GPU's side holds
  /// until two more segments have been filled: what one operation needs is one room. Waits only
  /// when the GPU is three segments behind.
  Room reserve(std::size_t bytes);
  /// The host's side is copied to the GPU's, or `bytes` of it to `device`, in the stream's order.
  void send(const Room& room) { send(room, room.device); }
  void send(const Room& room, void* device);

  /// Least room that comes in one piece without growing.
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
