// Requests in as many launches as their blocks need: a grid has 2³¹ − 1 blocks at most.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "gpu/cuda/runtime.hpp"

namespace gossamer::gpu::cuda {

inline constexpr std::size_t kMostBlocks = 0x7FFF'FFFF;

/// Calls serve(some, longest) for consecutive parts of the requests, each with at least one value
/// and with kMostBlocks blocks at most where every request has one for each `chunk` values of the
/// longest. Nothing is called for requests without values.
template <class Request, class Serve>
void in_launches(std::span<const Request> requests, std::size_t chunk, Serve serve) {
  std::size_t longest = 0;
  for (const Request& request : requests) longest = std::max(longest, request.length);
  if (longest == 0) return;
  const std::size_t together = std::max<std::size_t>(1, kMostBlocks / pieces_of(longest, chunk));
  if (requests.size() <= together) return serve(requests, longest);
  for (; !requests.empty(); requests = requests.subspan(std::min(together, requests.size())))
    in_launches(requests.first(std::min(together, requests.size())), chunk, serve);
}

}  // namespace gossamer::gpu::cuda
