#include "peer/privacy/privacy_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <variant>

#include "theory/pair_noise.hpp"
#include "theory/privacy_accountant.hpp"

namespace gossamer::peer {
namespace {

/// The keys of [privacy] against each other.
Status check_keys(const train::PrivacyOptions& privacy) {
  if (!privacy.on() && privacy.pair_noise > 0)
    return invalid_error(
        "privacy.pair_noise: noise hides gradients of at most privacy.clip, which is 0; set "
        "privacy.clip, for example to 1");
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

/// Whether pairs of neighbours can share noise that cancels, and hides what it is counted for.
Status check_pairs(const PrivateRun& run) {
  const Config& config = run.config;
  const train::PrivacyOptions& privacy = config.optimizer.privacy;
  if (privacy.pair_noise == 0) return {};
  const auto refused = [](const std::string& why) {
    return invalid_error("privacy.pair_noise: " + why);
  };
  if (!run.algorithm.requirements().mixing_matrix)
    return refused(
        fmt::format("it cancels in the averages of neighbours, and '{}' averages otherwise; set it "
                    "to 0, or choose an algorithm that mixes (dpsgd, gradient_tracking)",
                    config.algorithm.kind));
  if (config.mixing.kind != "mean")
    return refused(fmt::format(
        "it cancels in means of the rows by W, which '{}' does not take; set mixing.rule = mean, "
        "or set it to 0",
        config.mixing.kind));
  if (run.schedule.weighing().only_rows())
    return refused(
        "it cancels where the columns of W sum to 1, and with topology.weights = in_degree only "
        "its rows do; set topology.weights = auto, or set it to 0");
  if (run.schedule.period() != 1 || !run.schedule.participants().are_all())
    return refused(
        fmt::format("neighbours share it in every round, and those of '{}' change; choose a graph "
                    "that does not (exponential, torus), in which all peers take part",
                    config.topology.kind));
  if (config.optimizer.rule.kind != gpu::UpdateRule::Kind::sgd)
    return refused(
        "it cancels where steps are linear in the gradients, as those of SGD are; set "
        "optimizer.kind = sgd, or set it to 0");
  if (!gossip::is_lockstep(config.exchange.kind()))
    return refused(
        fmt::format("it cancels in the average of rows of the same step, which policy {} does not "
                    "wait for; set algorithm.policy = sync, or set it to 0",
                    config.exchange.policy));
  const topology::Graph partners = noise_partners(run.schedule);
  const auto fewest = std::ranges::min_element(partners.out, {}, &std::vector<int>::size);
  if (fewest->empty()) return refused("peer 0 is alone; set it to 0");
  if (static_cast<int>(fewest->size()) <= privacy.colluding)
    return invalid_error(fmt::format(
        "privacy.colluding: {} colluding peers may be all neighbours of peer {}, and know all "
        "noise that it shares; set it to at most {}, choose a graph with more neighbours, or set "
        "privacy.pair_noise = 0",
        privacy.colluding, fewest - partners.out.begin(), fewest->size() - 1));
  constexpr double kMostOperations = 1e9;  // half a second for each σ that is tried, of about 15
  int most = privacy.colluding;
  while (most >= 0 && theory::effective_noise_cost(config.run.peers, most) > kMostOperations)
    --most;
  if (most < 0)
    return refused(
        fmt::format("what it hides among {} peers would take too long to compute; set it to 0",
                    config.run.peers));
  if (most < privacy.colluding)
    return invalid_error(fmt::format(
        "privacy.colluding: what noise hides from any {} of {} peers would take too long to "
        "compute; set it to at most {}, or set privacy.pair_noise = 0",
        privacy.colluding, config.run.peers, most));
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
  return check_pairs(run);
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

topology::Graph noise_partners(const topology::MixingSchedule& schedule) {
  const topology::Graph graph = topology::graph_of(*schedule.at(0));
  return topology::union_of(std::array{graph, topology::reversed(graph)});
}

namespace {

/// The least noise with which no peer spends more than privacy.epsilon.
Result<double> planned_noise(const PrivateRun& run, const std::set<std::size_t>& shard_sizes) {
  const train::PrivacyOptions& privacy = run.config.optimizer.privacy;
  double least = 0;
  // A larger shard has a smaller q, and may have more batches.
  for (const std::size_t size : shard_sizes) {
    const double sampling = sampling_of(run.config.shards, size);
    const std::uint64_t steps = planned_steps(run.config, run.algorithm, size);
    if (least > 0 &&
        theory::PrivacyAccountant(sampling, least).epsilon(steps, privacy.delta) <= privacy.epsilon)
      continue;
    const auto noise =
        theory::noise_multiplier_for(privacy.epsilon, privacy.delta, sampling, steps);
    if (!noise)
      return invalid_error(fmt::format(
          "privacy.epsilon: no noise reaches {} at delta {}; set a larger epsilon or delta",
          privacy.epsilon, privacy.delta));
    least = *noise;
  }
  return least;
}

}  // namespace

Result<PrivacyPlan> plan_privacy(const PrivateRun& run, const train::Dataset& data,
                                 const train::Shards& shards) {
  PrivacyPlan plan{run.config.optimizer.privacy, {}};
  train::PrivacyOptions& privacy = plan.options;
  if (data.gradient_noise > 0)
    return invalid_error(
        "data.gradient_noise: the data add noise to each gradient, which is not a sample's; set it "
        "to 0 in a run with privacy.clip");
  std::set<std::size_t> sizes;
  for (const auto& shard : shards)
    if (!shard.empty()) sizes.insert(shard.size());
  const std::size_t largest = sizes.empty() ? 0 : *sizes.rbegin();
  if (privacy.delta * static_cast<double>(largest) >= 1)
    return invalid_error(fmt::format(
        "privacy.delta: at {}, one of the {} samples of the largest shard may be given away; set "
        "it well below 1 / {}",
        privacy.delta, largest, largest));
  const bool planned = privacy.epsilon > 0 && !sizes.empty();  // else all peers are elsewhere
  if (planned) {
    GOSSAMER_TRY(privacy.noise_multiplier, planned_noise(run, sizes));
  }
  const auto peers = static_cast<std::size_t>(run.config.run.peers);
  plan.effective_noise.assign(peers, privacy.noise_multiplier);
  if (privacy.pair_noise == 0 || privacy.noise_multiplier == 0) return plan;
  const topology::Graph partners = noise_partners(run.schedule);
  theory::PairNoise noise{privacy.noise_multiplier, privacy.pair_noise, privacy.colluding};
  if (planned) {
    noise.own = theory::own_noise_for(privacy.noise_multiplier, partners, noise);
    privacy.noise_multiplier = noise.own;
  }
  plan.effective_noise = theory::effective_noise(partners, noise);
  return plan;
}

}  // namespace gossamer::peer
