// Benchmark of what the runtime adds to training: scheduler, exchange and mixing, per peer and
// round.
#pragma once

#include <vector>

#include "base/result.hpp"

namespace gossamer::peer {

struct RuntimeBenchmark {
  int peers = 0;
  int rounds = 0;
  std::vector<double> microseconds;  ///< of each pair: (run − training alone) / (peers · rounds)
  double median = 0;
  double low = 0,
         high =
             0;  ///< order statistics that hold the median with at least 95 % (9 pairs: 2nd, 8th)
  double training_microseconds = 0;  ///< median of training alone, per peer and round
};

/// dpsgd on softmax regression (digits, batch 16) over a ring, on one thread, against the same
/// local steps without rounds; `pairs` ≥ 6 interleaved pairs, in the process's CPU time.
Result<RuntimeBenchmark> bench_runtime(int peers, int rounds, int pairs);

}  // namespace gossamer::peer
