// The survey as the device itself needs it.
#pragma once

#include "gpu/cuda/cuda.hpp"

namespace gossamer::gpu::cuda {

/// Whether `card` can be used (invalid: the reason in words).
Status check_card(const Survey& survey, int card);
/// Whether each of the cards reaches the memory of all others (invalid: which do not).
Status check_reach(const std::vector<CardInfo>& cards);

}  // namespace gossamer::gpu::cuda
