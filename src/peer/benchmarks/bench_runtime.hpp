// `gossamer bench runtime`: the overhead of the runtime (scheduler, exchange and mixing) over
// training alone, per peer and round.
#pragma once

#include <vector>

#include "base/result.hpp"

namespace gossamer::peer {

struct RuntimeBenchmark {
  int peers = 0;
  int rounds = 0;
  std::vector<double> microseconds;  ///< of each pair: (run − training alone) / (peers · rounds)
  double median = 0;                 ///< of `microseconds`
  double low = 0, high = 0;          ///< 95 % confidence interval of the median
  double training_microseconds = 0;  ///< median of training alone, per peer and round
};

/// Runs dpsgd with softmax regression (digits, batch 16) on a ring, on one thread, and the same
/// local steps without the runtime, in `pairs` ≥ 6 interleaved pairs. Measures CPU time.
Result<RuntimeBenchmark> bench_runtime(int peers, int rounds, int pairs);

}  // namespace gossamer::peer
