#include "peer/leak/sample_attack.hpp"

#include <algorithm>
#include <utility>

#include "train/shards.hpp"

namespace gossamer::peer {
namespace {

/// The samples on which a peer with this shard trains in rounds first … last, ascending, each once.
/// Of private batches, which are secret: the whole shard.
std::vector<std::uint32_t> trained_on(const Setup& setup, const std::vector<std::uint32_t>& shard,
                                      int peer, gossip::Round first, gossip::Round last) {
  if (setup.workload->spec().privacy) return shard;
  train::BatchOrder order(shard, setup.config.shards.batch, peer, setup.config.run.seed);
  std::vector<std::uint32_t> samples;
  const std::uint64_t steps = setup.steps_per_round(peer);
  for (std::uint64_t step = first * steps; step < (last + 1) * steps; ++step)
    for (const std::uint32_t sample : order.batch(step)) samples.push_back(sample);
  std::ranges::sort(samples);
  const auto repeated = std::ranges::unique(samples);
  samples.erase(repeated.begin(), repeated.end());
  return samples;
}

}  // namespace

bool SampleOutcome::is_better_than(const SampleOutcome& other) const {
  return std::pair(recognised, psnr) > std::pair(other.recognised, other.psnr);
}

Result<SampleAttack> SampleAttack::make(const Setup& setup, gossip::Round rounds, int inversion) {
  const auto& data = *setup.workload->spec().data;
  const Config& config = setup.config;
  GOSSAMER_TRY(train::Shards shards,
               train::make_shards(data, config.shards, config.run.peers, config.run.seed));
  train::Shards members;
  for (std::size_t peer = 0; peer < shards.size(); ++peer)
    members.push_back(trained_on(setup, shards[peer], static_cast<int>(peer), 0, rounds - 1));
  GOSSAMER_TRY(MembershipAttack membership, MembershipAttack::make(config, data, members));
  SampleAttack attack(setup, std::move(shards), std::move(membership));
  if (inversion > 0) {
    GOSSAMER_TRY(GradientInversion made, GradientInversion::make(config, data, inversion));
    attack.inversion_ = std::make_unique<GradientInversion>(std::move(made));
  }
  return attack;
}

SampleAttack::SampleAttack(const Setup& setup, train::Shards shards, MembershipAttack membership)
    : setup_(setup),
      data_(*setup.workload->spec().data),
      shards_(std::move(shards)),
      recovery_(data_, setup.workload->spec().blocks),
      membership_(std::move(membership)) {}

SampleAttack::Outcomes SampleAttack::attack(std::span<const double> estimate, int peer,
                                            gossip::Round t) const {
  const std::vector<std::uint32_t> samples =
      trained_on(setup_, shards_[static_cast<std::size_t>(peer)], peer, t, t);
  const auto candidates = recovery_.candidates(estimate);
  Outcomes outcomes{outcome(candidates, samples, peer), std::nullopt};
  if (samples.size() == 1)
    if (const auto label = recovery_.label(estimate))
      outcomes.found.label = *label == data_.labels[samples[0]];
  if (data_.test_count() > 0)
    outcomes.control = outcome(recovery_.other_samples(candidates.size()), samples, peer);
  return outcomes;
}

SampleOutcome SampleAttack::invert(std::span<const double> estimate, int peer) const {
  const std::vector<std::uint32_t> samples =
      trained_on(setup_, shards_[static_cast<std::size_t>(peer)], peer, 0, 0);
  std::vector<std::int32_t> labels = labels_of(samples);
  std::optional<bool> right;
  if (labels.size() == 1)
    if (const auto label = recovery_.label(estimate)) {
      right = *label == labels[0];
      labels[0] = *label;
    }
  std::vector<float> start(setup_.parameters);
  setup_.workload->initialise(peer, start);
  std::vector<double> gradient(estimate.begin(), estimate.end());
  for (double& value : gradient) value = -value;
  const std::uint64_t seed = setup_.config.run.seed + static_cast<std::uint64_t>(peer);
  SampleOutcome found = outcome(inversion_->invert(start, gradient, labels, seed), samples, peer);
  found.label = right;
  return found;
}

std::vector<std::int32_t> SampleAttack::labels_of(const std::vector<std::uint32_t>& samples) const {
  const auto batch = static_cast<std::size_t>(setup_.config.shards.batch);
  std::vector<std::int32_t> labels;
  for (std::size_t i = 0; i < batch; ++i)
    labels.push_back(data_.labels[samples[i * samples.size() / batch]]);
  return labels;
}

SampleOutcome SampleAttack::outcome(const std::vector<std::vector<float>>& candidates,
                                    const std::vector<std::uint32_t>& samples, int peer) const {
  std::vector<RecoveredSample> matches = recovery_.match(samples, candidates);
  SampleOutcome outcome;
  if (matches.empty()) return outcome;
  const auto batch = static_cast<std::size_t>(setup_.config.shards.batch);
  if (setup_.workload->spec().privacy && batch > 0)
    matches.resize(std::min(matches.size(), batch * setup_.steps_per_round(peer)));
  const std::size_t count = matches.size();
  outcome.psnr = (matches[(count - 1) / 2].psnr + matches[count / 2].psnr) / 2;
  const auto recognised = std::ranges::count_if(
      matches, [](const RecoveredSample& match) { return match.psnr >= kRecognisable; });
  outcome.recognised = static_cast<double>(recognised) / static_cast<double>(count);
  outcome.best = std::move(matches.front());
  return outcome;
}

}  // namespace gossamer::peer
