// How much of their privacy the peers of a process have spent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "theory/privacy_accountant.hpp"
#include "train/privacy/options.hpp"

namespace gossamer::peer {

struct SpentPrivacy {
  std::uint64_t steps = 0;  ///< private gradients: as many, or fewer
  double epsilon = 0;       ///< after them, at the delta of the run
};

/// Thread: one at a time.
class PrivacyLedger {
 public:
  /// `options`: with the noise multiplier. `peers`: of the process.
  PrivacyLedger(const train::PrivacyOptions& options, std::size_t peers)
      : options_(options), repeated_(peers) {}

  /// The process starts again, and the peer's count of local steps at `steps`. Before, the peer may
  /// have computed `logged` gradients and `unlogged` more, from which others have learnt: steps
  /// that it now takes again, with new noise, count twice.
  void resume(std::size_t index, std::uint64_t steps, std::uint64_t logged, std::uint64_t unlogged);
  /// After `steps` local steps. `sampling`: q of the peer's batches.
  SpentPrivacy spent(std::size_t index, double sampling, std::uint64_t steps);

 private:
  train::PrivacyOptions options_;
  std::vector<std::uint64_t> repeated_;                      ///< steps that count twice, by peer
  std::map<double, theory::PrivacyAccountant> accountants_;  ///< by sampling
};

}  // namespace gossamer::peer
