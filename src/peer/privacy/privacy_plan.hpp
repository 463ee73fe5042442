// The privacy of a run: combinations with other settings that cannot run, and the noise that
// reaches an ε.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "gossip/algorithm.hpp"
#include "gossip/rule.hpp"
#include "peer/config/config.hpp"
#include "peer/privacy/privacy_account.hpp"
#include "topology/graph.hpp"
#include "topology/mixing_matrix.hpp"
#include "train/dataset.hpp"
#include "train/shards.hpp"

namespace gossamer::peer {

/// What a private run must fit.
struct PrivateRun {
  const Config& config;
  const gossip::Algorithm& algorithm;
  const gossip::MixingRule& rule;
  const topology::MixingSchedule& schedule;
};

/// Whether gradients alone tell of a peer's samples in this run. Errors (invalid) name the key, the
/// reason, and settings that would work. Without privacy there is none.
Status check_privacy(const PrivateRun& run);

/// The probability with which a sample enters a batch of its peer, q in (0, 1]. `shard_size`: at
/// least the batch.
double sampling_of(const train::ShardOptions& options, std::size_t shard_size);

/// The neighbours of each peer in a graph that does not change, in both directions: those with
/// which it shares noise, if privacy.pair_noise is on.
topology::Graph noise_partners(const topology::MixingSchedule& schedule);

/// The options of the configuration, with the noise multiplier, and what they hide. Where ε is
/// given, no peer spends more in all rounds. `run`: passed check_privacy(), with privacy on. Errors
/// (invalid): no noise reaches ε; δ is not below 1 over the size of the largest shard; data with
/// noise of their own.
Result<PrivacyPlan> plan_privacy(const PrivateRun& run, const train::Dataset& data,
                                 const train::Shards& shards);

/// Local steps of a peer with `shard_size` samples in all rounds of a run: the most gradients that
/// it computes.
std::uint64_t planned_steps(const Config& config, const gossip::Algorithm& algorithm,
                            std::size_t shard_size);

}  // namespace gossamer::peer
