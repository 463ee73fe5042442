// Samples that estimates of updates show, held against those that were trained on.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "peer/leak/gradient_inversion.hpp"
#include "peer/leak/membership.hpp"
#include "peer/leak/sample_recovery.hpp"
#include "peer/setup/setup.hpp"

namespace gossamer::peer {

/// What candidates show of the samples of one round of a peer: of private batches, which are
/// secret, of as many samples of its shard as a round has, those that are nearest to candidates.
struct SampleOutcome {
  double psnr = 0;                 ///< median over the samples, dB; 0 without a candidate
  double recognised = 0;           ///< part of the samples with kRecognisable or more
  gossip::Round rounds = 0;        ///< that were observed for it
  std::optional<bool> label = {};  ///< batches of one sample: whether the label is right
  std::optional<RecoveredSample> best = {};

  /// Shows more samples, or as many more exactly.
  bool is_better_than(const SampleOutcome& other) const;
};
/// PSNR from which on a sample counts as recognised, dB.
inline constexpr double kRecognisable = 20;

/// Outlived by the setup. Thread: one at a time.
class SampleAttack {
 public:
  /// For runs that are observed for `rounds` rounds. `inversion`: iterations, 0: invert() is not
  /// called. Errors as of make_shards(), MembershipAttack::make() and GradientInversion::make().
  static Result<SampleAttack> make(const Setup& setup, gossip::Round rounds, int inversion);

  /// SampleRecovery::possible().
  bool possible() const { return recovery_.possible(); }
  struct Outcomes {
    SampleOutcome found;
    /// With as many test samples in place of the estimate's candidates; none without test samples.
    std::optional<SampleOutcome> control;
  };
  /// `estimate`: [d], of the update of `peer` in round t.
  Outcomes attack(std::span<const double> estimate, int peer, gossip::Round t) const;
  /// `estimate`: [d], of the update of `peer` in round 0, whose batch GradientInversion looks for
  /// from the starting row. It has the labels of the batch; of private batches, those of as many
  /// samples of the shard, evenly spaced; of one sample, the label that the estimate shows.
  SampleOutcome invert(std::span<const double> estimate, int peer) const;
  /// MembershipAttack::auc().
  std::optional<double> membership(std::span<const float> row, int peer) const {
    return membership_.auc(row, peer);
  }

 private:
  SampleAttack(const Setup& setup, train::Shards shards, MembershipAttack membership);
  std::vector<std::int32_t> labels_of(const std::vector<std::uint32_t>& samples) const;
  SampleOutcome outcome(const std::vector<std::vector<float>>& candidates,
                        const std::vector<std::uint32_t>& samples, int peer) const;

  const Setup& setup_;
  const train::Dataset& data_;
  train::Shards shards_;
  SampleRecovery recovery_;
  MembershipAttack membership_;
  std::unique_ptr<GradientInversion> inversion_;  ///< null: none is wanted
};

}  // namespace gossamer::peer
