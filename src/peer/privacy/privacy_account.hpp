// How much of their privacy the peers of a process have spent. Whatever happens to the process, and
// however often it starts again, the account never says less: a number of gradients is on the disk
// before the first of them is computed.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "theory/privacy_accountant.hpp"
#include "train/privacy/options.hpp"

namespace gossamer::peer {

/// What hides the samples of each peer.
struct PrivacyPlan {
  train::PrivacyOptions options;  ///< with the noise multiplier
  /// By peer, in multiples of clip: what a peer's own noise and that of its pairs hide together,
  /// as noise of its own; without pair noise the noise multiplier.
  std::vector<double> effective_noise;
};

/// One process at a time keeps an account in a file. Thread: spend() and spent() of a peer from one
/// thread at a time; the rest while nothing is trained.
class PrivacyAccount {
 public:
  /// Gradients of each peer that are reserved at a time, beyond those of the request.
  static constexpr std::uint64_t kBlock = 64;

  /// Of the plan's peers. In memory alone, until keep_in().
  explicit PrivacyAccount(PrivacyPlan plan)
      : plan_(std::move(plan)),
        spent_(plan_.effective_noise.size()),
        reserved_(plan_.effective_noise.size()) {}

  /// Keeps the account in `file` from now on, which is made if it is not there, and otherwise says
  /// what was spent already. `settings`: a hash of all that ε depends on. Errors (data): the file
  /// is damaged, of another run or of other settings, or cannot be written; it is named.
  Status keep_in(const std::filesystem::path& file, const std::string& run_id,
                 const std::string& settings);
  /// Whether keep_in() found a file in which something was spent.
  bool has_earlier_account() const { return found_; }
  /// Whether nothing was spent. Not while a peer trains.
  bool empty() const;
  /// Counts gradients of an earlier process of which there is no account.
  void add(int peer, std::uint64_t gradients);

  /// Called before `count` gradients of the peer are computed. False: the account cannot be
  /// written, and they must not be computed.
  bool spend(int peer, std::uint64_t count);
  /// Whether spend() has failed; then status() says why (data). Any thread.
  bool failed() const { return failed_; }
  const Status& status() const { return status_; }
  /// Writes the exact numbers, after the last gradient. Errors as of keep_in().
  Status close();

  std::uint64_t spent(int peer) const { return spent_.at(static_cast<std::size_t>(peer)); }
  /// ε of the peer's samples at the delta of the run. `sampling`: q of its batches.
  double epsilon(int peer, double sampling);

 private:
  Status write() const;

  PrivacyPlan plan_;
  std::vector<std::uint64_t> spent_, reserved_;  ///< gradients, by peer
  /// By sampling and noise.
  std::map<std::pair<double, double>, theory::PrivacyAccountant> accountants_;
  std::filesystem::path file_;  ///< empty: in memory alone
  std::string run_id_, settings_;
  bool found_ = false;
  Status status_;  ///< does not change once failed_ is set
  std::atomic<bool> failed_ = false;
};

}  // namespace gossamer::peer
