#include "train/graph/gradient_buffers.hpp"

#include <algorithm>

namespace gossamer::train {

std::size_t GradientBuffers::take(std::size_t values) {
  std::size_t best = buffers_.size();
  for (std::size_t b = 0; b < buffers_.size(); ++b) {
    if (buffers_[b].taken) continue;
    if (best == buffers_.size()) {
      best = b;
      continue;
    }
    const std::size_t size = buffers_[b].values, so_far = buffers_[best].values;
    const bool fits = size >= values, best_fits = so_far >= values;
    if (fits != best_fits ? fits : fits ? size < so_far : size > so_far) best = b;
  }
  if (best == buffers_.size()) buffers_.emplace_back();
  buffers_[best].values = std::max(buffers_[best].values, values);
  buffers_[best].taken = true;
  return best;
}

}  // namespace gossamer::train
