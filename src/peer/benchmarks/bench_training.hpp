// `gossamer bench train` and `bench mix`: local steps of many small models, and the mix of many
// long rows, on one core. experiments/benchmarks/ compares them with other programs.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace gossamer::peer {

/// Measures local steps per second of CPU time, with gathering of batches and updates but without
/// mixing. `peers` peers train one batch each, repeatedly, for about `seconds`. Workloads: softmax
/// (64-10, batch 16), mlp (784-128-10, batch 32), cnn (28 × 28, batch 32), on random data with 512
/// samples per peer, as in experiments/benchmarks/torch_baseline.py. Error (invalid): the workload
/// is unknown.
Result<double> bench_training_steps_per_second(const std::string& workload, int peers,
                                               double seconds);

/// The mix of `peers` rows on a ring, compared with its bound: every row is read once and written
/// once at the machine's copy bandwidth.
struct MixBenchmark {
  int peers = 0;
  std::size_t length = 0;            ///< floats per row
  std::vector<double> mix_seconds;   ///< of each mix of all rows, one thread
  std::vector<double> copy_seconds;  ///< of a std::memcpy of all rows, right after each mix
  std::vector<double> fractions;     ///< copy / mix; at most 1
  double median_fraction = 0, low_fraction = 0, high_fraction = 0;  ///< median_interval(fractions)
  double copy_bytes_per_second = 0;  ///< median; counts each byte once
};

/// Measures `pairs` ≥ 6 interleaved pairs of (mix, copy) after a warm-up. Memory: 2 × peers ×
/// length floats.
MixBenchmark bench_mix(int peers, std::size_t length, int pairs);

}  // namespace gossamer::peer
