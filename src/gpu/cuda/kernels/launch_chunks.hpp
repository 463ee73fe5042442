// Launching kernels with one block per chunk and request, where the requests themselves are the
// kernel's tasks.
#pragma once

#include <cstring>
#include <span>

#include "gpu/cuda/kernels/launches.hpp"
#include "gpu/cuda/stream_context.hpp"

namespace gossamer::gpu::cuda {

/// Uploads the requests and launches kernel(requests, count). Block b works on chunk b / count of
/// request b % count; a chunk may lie past the end of a short request.
template <class Request>
void launch_chunks(StreamContext& context, void (*kernel)(const Request*, unsigned),
                   std::span<const Request> requests, std::size_t chunk, unsigned threads) {
  in_launches(requests, chunk, [&](std::span<const Request> some, std::size_t longest) {
    const UploadRing::Slot slot = context.uploads().reserve(some.size_bytes());
    std::memcpy(slot.host, some.data(), some.size_bytes());
    context.uploads().send(slot);
    launch(kernel, static_cast<unsigned>(some.size() * pieces_of(longest, chunk)), threads,
           context.stream(), reinterpret_cast<const Request*>(slot.device),
           static_cast<unsigned>(some.size()));
  });
}

}  // namespace gossamer::gpu::cuda
