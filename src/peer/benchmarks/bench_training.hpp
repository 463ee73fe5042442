// Benchmarks of what one core computes: local steps of many small models, and the mix of many long
// rows. The rivals and the tables are experiments/benchmarks/.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace gossamer::peer {

/// Local steps per second of one core's time (CPU time of the process), batch gather and update
/// included, no mixing: `peers` peers do one batch each in turn, for about `seconds`. Workloads:
/// softmax (64-10, batch 16), mlp (784-128-10, batch 32), cnn (28 × 28, batch 32) on random data,
/// 512 samples a peer, as in experiments/benchmarks/torch_rivals.py. An unknown workload is an
/// error that lists them.
Result<double> bench_training_steps_per_second(const std::string& workload, int peers,
                                               double seconds);

/// One mix of `peers` rows on a ring against the bound: every row read once and written once at
/// this machine's copy bandwidth.
struct MixBenchmark {
  int peers = 0;
  std::size_t length = 0;            ///< floats a row
  std::vector<double> mix_seconds;   ///< of each mix of all rows, one thread
  std::vector<double> copy_seconds;  ///< of the std::memcpy of all rows that ran right after it
  std::vector<double> fractions;     ///< copy / mix: 1 is the bound
  double median_fraction = 0, low_fraction = 0, high_fraction = 0;  ///< median_interval(fractions)
  double copy_bytes_per_second = 0;  ///< median; every byte counted once
};

/// `pairs` ≥ 6 interleaved pairs of (mix, copy), after one of each that does not count. Memory: 2 ×
/// peers × length floats.
MixBenchmark bench_mix(int peers, std::size_t length, int pairs);

}  // namespace gossamer::peer
