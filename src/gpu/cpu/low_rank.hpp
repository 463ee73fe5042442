// Products of the matrices of a row with vectors, and updates of rank 1, on the CPU: one request at
// a time, on the calling thread (gpu/low_rank_requests.hpp).
#pragma once

#include "gpu/low_rank_requests.hpp"

namespace gossamer::gpu {

template <class Real>
void run(const ProjectRequest<Real>& request);
template <class Real>
void run(const AddProductRequest<Real>& request);

}  // namespace gossamer::gpu
