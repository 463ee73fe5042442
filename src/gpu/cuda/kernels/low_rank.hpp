// Products of the matrices of a row with vectors, and updates of rank 1, on a GPU
// (gpu/low_rank_requests.hpp). Each call enqueues its kernels for all requests and does not wait.
#pragma once

#include <span>

#include "gpu/cuda/stream_context.hpp"
#include "gpu/low_rank_requests.hpp"

namespace gossamer::gpu::cuda {

template <class Real>
void enqueue(StreamContext& context, std::span<const ProjectRequest<Real>> requests);
template <class Real>
void enqueue(StreamContext& context, std::span<const AddProductRequest<Real>> requests);

}  // namespace gossamer::gpu::cuda
