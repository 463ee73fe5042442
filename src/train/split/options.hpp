// How a model is cut over the workers of a replica: the section [split].
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/parameter.hpp"

namespace gossamer::train {

struct SplitOptions {
  int layers = 1;        ///< stages of consecutive operations of the model
  int parameters = 1;    ///< slices of a stage; each is a worker's
  int microbatches = 0;  ///< of a batch; 0: four for each worker
  std::vector<std::string> cuts =
      {};                        ///< the operations with which stages 1, 2, … begin; empty: chosen
  std::string encode = "model";  ///< of what a codec makes a message: "model" or "part"

  int workers() const { return layers * parameters; }  ///< of a replica
  bool is_on() const { return workers() > 1; }
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
