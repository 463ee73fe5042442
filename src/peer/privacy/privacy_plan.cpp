#include "peer/privacy/privacy_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <variant>

#include "theory/privacy_accountant.hpp"

namespace gossamer::peer {
namespace {

/// The keys of [privacy] against each other.
Status check_keys(const train::PrivacyOptions& privacy) {
  if (!privacy.on() && (privacy.noise_multiplier > 0 || privacy.epsilon > 0))
    return invalid_error(
        fmt::format("privacy.{}: noise has to cover the longest gradient of a sample, and "
                    "privacy.clip = 0 does "
                    "not bound it; set privacy.clip, for example to 1",
                    privacy.epsilon > 0 ? "epsilon" : "noise_multiplier"));
  if (!privacy.on()) return {};
  if ((privacy.noise_multiplier > 0) == (privacy.epsilon > 0))
    return invalid_error(
        privacy.epsilon > 0
            ? "privacy.epsilon: the noise for it follows from the run, and "
              "privacy.noise_multiplier is set too; remove one of the two"
            : "privacy.clip: clipped gradients without noise hide nothing; set privacy.epsilon "
              "(for example 8), or privacy.noise_multiplier");
  if (privacy.noise_multiplier > 0 && privacy.noise_multiplier < theory::kLeastNoise)
    return invalid_error(fmt::format(
        "privacy.noise_multiplier: {} is below {}, where epsilon is in the thousands and means "
        "nothing; set it to 0.5 or more",
        privacy.noise_multiplier, theory::kLeastNoise));
  return {};
}

bool standardises(const Config& config) {
  const auto found = config.data.values.find("standardise");
  return found != config.data.values.end() && std::get<bool>(found->second);
}

}  // namespace

Status check_privacy(const PrivateRun& run) {
  const Config& config = run.config;
  const train::PrivacyOptions& privacy = config.optimizer.privacy;
  GOSSAMER_TRY_STATUS(check_keys(privacy));
  if (!privacy.on()) return {};
  if (config.model.kind == kExternalModel)
    return invalid_error(
        "privacy.clip: the program of model.kind = external computes its own gradients; make them "
        "private there, for example with Opacus, and remove the section [privacy]");
  const gossip::AlgorithmRequirements needs = run.algorithm.requirements();
  if (!needs.trainer)
    return invalid_error(
        fmt::format("privacy.clip: '{}' trains on no samples; remove the section [privacy]",
                    config.algorithm.kind));
  if (needs.one_node)
    return invalid_error(fmt::format(
        "privacy.clip: '{}' has all samples in one node; compare with allreduce, which sends what "
        "each peer computes",
        config.algorithm.kind));
  if (run.rule.reads_losses())
    return invalid_error(fmt::format(
        "mixing.rule: '{}' chooses neighbours by losses on the peer's samples, which tell more of "
        "them than the private gradients do; choose another rule (clipped, trimmed_mean)",
        config.mixing.kind));
  if (standardises(config))
    return invalid_error(
        "data.standardise: means and variances of the samples are exact, and the scaled features "
        "of all peers depend on them; scale the features in the files, and set data.standardise = "
        "false");
  if (privacy.epsilon > 0 && config.shards.partition == "own")
    return invalid_error(
        "privacy.epsilon: the noise for it depends on the sizes of the shards, which own data tell "
        "only at the start; set privacy.noise_multiplier, and read epsilon in the log");
  return {};
}

double sampling_of(const train::ShardOptions& options, std::size_t shard_size) {
  if (options.batch == 0) return 1;
  return std::min(1.0, options.batch / static_cast<double>(std::max<std::size_t>(shard_size, 1)));
}

std::uint64_t planned_steps(const Config& config, const gossip::Algorithm& algorithm,
                            std::size_t shard_size) {
  const auto batch = static_cast<std::size_t>(config.shards.batch);
  return config.run.rounds * gossip::local_steps_of_round(algorithm, [&]() -> std::uint64_t {
           return batch > 0 ? shard_size / batch : 1;
         });
}

Result<train::PrivacyOptions> plan_privacy(const Config& config, const gossip::Algorithm& algorithm,
                                           const train::Dataset& data,
                                           const train::Shards& shards) {
  train::PrivacyOptions privacy = config.optimizer.privacy;
  if (!privacy.on()) return privacy;
  if (data.gradient_noise > 0)
    return invalid_error(
        "data.gradient_noise: the data add noise to each gradient, which is not a sample's; set it "
        "to 0 in a run with privacy.clip");
  std::set<std::size_t> sizes;
  for (const auto& shard : shards)
    if (!shard.empty()) sizes.insert(shard.size());
  if (sizes.empty()) return privacy;  // the peers are in other processes
  const std::size_t largest = *sizes.rbegin();
  if (privacy.delta * static_cast<double>(largest) >= 1)
    return invalid_error(fmt::format(
        "privacy.delta: at {}, one of the {} samples of the largest shard may be given away; set "
        "it well below 1 / {}",
        privacy.delta, largest, largest));
  if (privacy.epsilon == 0) return privacy;
  // A larger shard has a smaller q, and may have more batches.
  for (const std::size_t size : sizes) {
    const double sampling = sampling_of(config.shards, size);
    const std::uint64_t steps = planned_steps(config, algorithm, size);
    if (privacy.noise_multiplier > 0 &&
        theory::PrivacyAccountant(sampling, privacy.noise_multiplier)
                .epsilon(steps, privacy.delta) <= privacy.epsilon)
      continue;
    const auto noise =
        theory::noise_multiplier_for(privacy.epsilon, privacy.delta, sampling, steps);
    if (!noise)
      return invalid_error(fmt::format(
          "privacy.epsilon: no noise reaches {} at delta {}; set a larger epsilon or delta",
          privacy.epsilon, privacy.delta));
    privacy.noise_multiplier = *noise;
  }
  return privacy;
}

}  // namespace gossamer::peer
