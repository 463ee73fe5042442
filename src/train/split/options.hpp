// How a model is cut over the workers of a replica: the section [split].
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/parameter.hpp"

namespace gossamer::train {

struct SplitOptions {
  /// Stages of consecutive operations of the model, slices of a stage, each of which is a worker's,
  /// and microbatches of a batch, 0: four for each stage.
  int layers = 1, parameters = 1, microbatches = 0;
  /// The operations with which stages 1, 2, … begin; empty: chosen.
  std::vector<std::string> cuts = {};
  /// A stage whose first operation is dense or a convolution sends gradients to the one before it,
  /// and then makes those of that operation's parameters (as in Qi et al. 2024, "Zero Bubble
  /// Pipeline Parallelism"). The bits are the same.
  bool overlap = true;
  /// "1f1b" or "eager_1f1b": Pipeline.
  std::string schedule = "1f1b";
  /// Of what a codec makes a message: "model" or "part".
  std::string encode = "model";

  int workers() const { return layers * parameters; }  ///< of a replica
  bool is_on() const { return workers() > 1; }
  bool is_eager() const { return schedule == "eager_1f1b"; }
  bool encodes_parts() const { return encode == "part"; }
  /// Microbatches of a batch: as many as it has samples, at most.
  int microbatches_of(int batch) const {
    return std::min(batch, microbatches > 0 ? microbatches : kMicrobatchesOfStage * layers);
  }
  /// With four, workers of equal stages with fast links are idle for less than a fifth of the time
  /// (Huang et al. 2019, §2.3, take the idle time of as many for negligible).
  static constexpr int kMicrobatchesOfStage = 4;
  static constexpr int kMostLayers = 64, kMostParameters = 64, kMostMicrobatches = 4096;
};

/// The samples of microbatch `k` of `count` in a batch: first … first + size − 1. Sizes differ by
/// one at most.
struct Microbatch {
  int first = 0, size = 0;
  static Microbatch of(int batch, int count, int k) {
    const auto begin = [&](int i) {
      return static_cast<int>(static_cast<long long>(batch) * i / count);
    };
    return {begin(k), begin(k + 1) - begin(k)};
  }
  static int largest(int batch, int count) { return (batch + count - 1) / count; }
};

const ParameterSet<SplitOptions>& split_parameters();

}  // namespace gossamer::train
