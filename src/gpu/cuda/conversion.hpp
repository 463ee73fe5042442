// Rows in fewer bytes, and keyed random numbers.
#pragma once

#include <cstring>
#include <span>

#include "gpu/cuda/lane.hpp"
#include "gpu/device.hpp"

namespace gossamer::gpu::cuda {

void to_bf16(Lane& lane, std::span<const Bf16Request> requests);
void from_bf16(Lane& lane, std::span<const Bf16Request> requests);
void to_int8(Lane& lane, std::span<const Int8Request> requests);
void from_int8(Lane& lane, std::span<const Int8Request> requests);
void to_signs(Lane& lane, std::span<const SignRequest> requests);
void from_signs(Lane& lane, std::span<const SignRequest> requests);
void integers(Lane& lane, std::span<const RandomRequest<std::uint32_t>> requests);
void uniforms(Lane& lane, std::span<const RandomRequest<float>> requests);

/// For kernels of one block per chunk and request: the requests themselves are the tasks.
template <class Request>
void launch_chunks(Lane& lane, void (*kernel)(const Request*, unsigned),
                   std::span<const Request> requests, std::size_t chunk, unsigned threads) {
  std::size_t longest = 0;
  for (const Request& request : requests)
    longest = request.length > longest ? request.length : longest;
  if (longest == 0) return;
  const Ring::Room room = lane.ring().reserve(requests.size_bytes());
  std::memcpy(room.host, requests.data(), requests.size_bytes());
  lane.ring().send(room);
  launch(kernel, static_cast<unsigned>(requests.size() * pieces_of(longest, chunk)), threads,
         lane.stream(), reinterpret_cast<const Request*>(room.device),
         static_cast<unsigned>(requests.size()));
}

}  // namespace gossamer::gpu::cuda
