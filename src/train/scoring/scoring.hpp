// Losses and hits of models on samples, which change nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpu/device.hpp"

namespace gossamer::train {

/// Of a model on the samples of one piece.
struct Score {
  double loss = 0;        ///< mean
  std::int64_t hits = 0;  ///< samples whose largest output is their label
};

/// Samples that are scored together: indices into the table, in host memory.
using Piece = std::span<const std::uint32_t>;

template <class Real>
struct ScoreRequest {
  const Real* parameters = nullptr;  ///< device memory
  std::vector<Piece> pieces = {};    ///< each of 1 … program.batch samples
  std::vector<Score> scores = {};    ///< out, of each piece
};

/// Scores all pieces of all requests in one call of the device. Thread: one at a time.
template <class Real>
void score(gpu::BasicDevice<Real>& device, const gpu::Task& task,
           std::span<ScoreRequest<Real>> requests);

}  // namespace gossamer::train
