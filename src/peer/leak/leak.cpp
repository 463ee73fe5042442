#include "peer/leak/leak.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <system_error>
#include <utility>

#include "base/id_list.hpp"
#include "peer/leak/membership.hpp"
#include "peer/leak/sample_recovery.hpp"
#include "peer/leak/sent_rows.hpp"
#include "peer/leak/updates.hpp"
#include "peer/runtime/run.hpp"
#include "theory/reconstruction.hpp"
#include "train/shards.hpp"

namespace gossamer::peer {
namespace {

using theory::Reconstruction;

/// Doubles that the attack may keep beside the rows of the run.
constexpr std::size_t kMostValues = std::size_t{1} << 28;

Status check_run(const Config& config) {
  const auto refuse = [](const std::string& key, const std::string& value,
                         const std::string& remedy) {
    return invalid_error(
        fmt::format("{} = '{}': gossamer leak attacks plain D-PSGD, in which every "
                    "row that is sent is a known mix of rows and one update; {}",
                    key, value, remedy));
  };
  if (config.algorithm.kind != "dpsgd")
    return refuse("algorithm.kind", config.algorithm.kind, "set it to 'dpsgd'");
  if (const auto order = std::get<std::string>(config.algorithm.values.at("order")); order != "atc")
    return refuse("algorithm.order", order, "set it to 'atc'");
  if (config.exchange.kind() != gossip::Policy::sync)
    return refuse("algorithm.policy", config.exchange.policy, "set it to 'sync'");
  if (config.mixing.kind != "mean")
    return refuse("mixing.rule", config.mixing.kind, "set it to 'mean'");
  if (config.codec.kind != "none")
    return refuse("codec.kind", config.codec.kind, "set it to 'none'");
  if (config.attack.kind != "none")
    return refuse("attack.kind", config.attack.kind, "set it to 'none'");
  if (!config.run.participants.empty())
    return refuse("run.participants", config.run.participants.front(), "leave it out");
  if (config.model.kind == kExternalModel)
    return refuse("model.kind", config.model.kind, "choose a model of `gossamer list models`");
  return {};
}

Status check_request(const Config& config, const LeakRequest& request) {
  const auto n = static_cast<std::size_t>(config.run.peers);
  if (request.rounds < 1 || request.rounds > config.run.rounds)
    return invalid_error(fmt::format("--rounds {}: give a number from 1 to run.rounds = {}",
                                     request.rounds, config.run.rounds));
  if (n * request.rounds > theory::kMostUpdates)
    return invalid_error(fmt::format(
        "--rounds {}: {} peers have {} updates in so many rounds, and {} at most can be attacked; "
        "observe {} rounds or fewer",
        request.rounds, n, n * request.rounds, theory::kMostUpdates, theory::kMostUpdates / n));
  for (const std::vector<int>& group : request.observers)
    for (const int peer : group)
      if (peer < 0 || static_cast<std::size_t>(peer) >= n)
        return invalid_error(
            fmt::format("--observers: there is no peer {}; ids are 0 to {}", peer, n - 1));
  return {};
}

/// Hops that what a peer sends takes to the group in the graph of the rounds' W together; −1 where
/// it never comes.
std::vector<int> distances(const topology::MixingSchedule& schedule, gossip::Round rounds,
                           const std::vector<int>& group) {
  std::vector<int> hops(static_cast<std::size_t>(schedule.peers()), -1);
  for (const int peer : group) hops[static_cast<std::size_t>(peer)] = 0;
  std::vector<int> reached = group;
  for (int distance = 1; !reached.empty(); ++distance) {
    std::vector<int> next;
    for (gossip::Round t = 0; t < rounds; ++t) {
      const auto w = schedule.at(t);
      for (const int peer : reached)
        for (const auto& neighbour : w->in_neighbours(peer)) {
          int& there = hops[static_cast<std::size_t>(neighbour.peer)];
          if (there >= 0) continue;
          there = distance;
          next.push_back(neighbour.peer);
        }
    }
    reached = std::move(next);
  }
  return hops;
}

/// Reads samples off estimates, and compares them with those that were trained on.
class SampleAttack {
 public:
  /// Errors as of make_shards() and MembershipAttack::make().
  static Result<SampleAttack> prepare(const Setup& setup) {
    const auto& data = *setup.workload->spec().data;
    const Config& config = setup.config;
    GOSSAMER_TRY(train::Shards shards,
                 train::make_shards(data, config.shards, config.run.peers, config.run.seed));
    GOSSAMER_TRY(MembershipAttack membership, MembershipAttack::make(config, data, shards));
    return SampleAttack(setup, std::move(shards), std::move(membership));
  }

  /// Fills in what belongs to samples. Returns the best match.
  std::optional<RecoveredSample> attack(std::span<const double> estimate,
                                        LeakedUpdate& update) const {
    const std::vector<std::uint32_t> samples = samples_of(update.peer, update.round);
    if (samples.size() == 1 && data_.classes > 0)
      if (const auto label = recovery_.label(estimate))
        update.label = *label == data_.labels[samples[0]];
    const auto candidates = recovery_.candidates(estimate);
    const auto matches = recovery_.match(samples, candidates);
    if (matches.empty()) return std::nullopt;
    const std::size_t counted = std::min(matches.size(), trained_on(update.peer, samples.size()));
    const auto mean = [counted](const std::vector<RecoveredSample>& some) {
      double sum = 0;
      for (std::size_t i = 0; i < counted; ++i) sum += some[i].psnr;
      return sum / static_cast<double>(counted);
    };
    update.psnr = mean(matches);
    if (const auto others = recovery_.other_samples(candidates.size()); !others.empty())
      update.control = mean(recovery_.match(samples, others));
    return matches.front();
  }
  /// MembershipAttack::advantage().
  std::optional<double> membership(std::span<const float> row, int peer) const {
    return membership_.advantage(row, peer);
  }
  std::vector<float> original(std::uint32_t sample) const {
    const auto begin =
        data_.features.begin() + static_cast<std::ptrdiff_t>(sample * data_.feature_count());
    return {begin, begin + static_cast<std::ptrdiff_t>(data_.feature_count())};
  }

 private:
  SampleAttack(const Setup& setup, train::Shards shards, MembershipAttack membership)
      : setup_(setup),
        data_(*setup.workload->spec().data),
        shards_(std::move(shards)),
        recovery_(data_, setup.workload->spec().blocks),
        membership_(std::move(membership)) {}

  /// How many of `samples` the peer trained on in a round: of a whole shard, which stands for
  /// private batches, as many as a round has on average.
  std::size_t trained_on(int peer, std::size_t samples) const {
    const auto batch = static_cast<std::size_t>(setup_.config.shards.batch);
    if (!setup_.workload->spec().privacy || batch == 0) return samples;
    return std::min(samples, batch * static_cast<std::size_t>(setup_.steps_per_round(peer)));
  }
  /// The samples that the peer trained on in the round; of private batches, which are secret, all
  /// of its shard.
  std::vector<std::uint32_t> samples_of(int peer, gossip::Round t) const {
    const std::vector<std::uint32_t>& shard = shards_[static_cast<std::size_t>(peer)];
    if (setup_.workload->spec().privacy) return shard;
    train::BatchOrder order(shard, setup_.config.shards.batch, peer, setup_.config.run.seed);
    std::vector<std::uint32_t> samples;
    const std::uint64_t steps = setup_.steps_per_round(peer);
    for (std::uint64_t step = t * steps; step < (t + 1) * steps; ++step)
      for (const std::uint32_t sample : order.batch(step)) samples.push_back(sample);
    std::ranges::sort(samples);
    const auto repeated = std::ranges::unique(samples);
    samples.erase(repeated.begin(), repeated.end());
    return samples;
  }

  const Setup& setup_;
  const train::Dataset& data_;
  train::Shards shards_;
  SampleRecovery recovery_;
  MembershipAttack membership_;
};

/// The run up to the last round that is observed. Its files are deleted.
Status run_and_keep(const Setup& setup, const std::filesystem::path& folder, const SentRows& sent) {
  RunRequest run_request;
  run_request.folder = folder;
  run_request.interrupted = [&sent] { return sent.complete(); };
  const auto outcome = run(setup, std::move(run_request));
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  if (!outcome.ok()) return outcome.error();
  if (!sent.complete() && outcome->stopped) return *outcome->stopped;
  return {};
}

/// What each group can explain, without a run.
ObserverLeak observe(const Setup& setup, const LeakRequest& request, const Reconstruction& known,
                     const std::vector<int>& group) {
  ObserverLeak leak{group, 0, {}};
  const std::vector<int> hops = distances(*setup.schedule, request.rounds, group);
  for (int peer = 0; peer < setup.workers(); ++peer) {
    if (std::ranges::binary_search(group, peer)) continue;
    const gossip::Round round = known.best_round(peer);
    leak.updates.push_back(
        {peer, hops[static_cast<std::size_t>(peer)], round, known.share(peer, round)});
  }
  return leak;
}

}  // namespace

Result<Leak> leak(Config config, const LeakRequest& request) {
  GOSSAMER_TRY_STATUS(check_run(config));
  GOSSAMER_TRY_STATUS(check_request(config, request));
  config.log.every = 0;
  config.checkpoint.every = 0;
  GOSSAMER_TRY(Setup setup, make_setup(std::move(config)));
  const auto n = static_cast<std::size_t>(setup.workers());
  Leak leak;
  if (!request.trains) {
    for (const std::vector<int>& group : request.observers) {
      const double similarity = request.similarity.value_or(0);
      const Reconstruction known(*setup.schedule, group, request.rounds, similarity);
      leak.observers.push_back(observe(setup, request, known, group));
      leak.observers.back().similarity = similarity;
    }
    return leak;
  }

  if (!setup.trains() || setup.workload->spec().data == nullptr)
    return invalid_error("the run trains nothing, so that there is nothing to learn from its rows");
  if (const std::size_t values = 3 * n * request.rounds * setup.parameters; values > kMostValues)
    return invalid_error(fmt::format(
        "--rounds {}: the rows of {} peers with {} parameters take too much memory; observe {} "
        "rounds or fewer",
        request.rounds, n, setup.parameters, kMostValues / (3 * n * setup.parameters)));
  SentRows sent(setup.workers(), request.rounds);
  setup.attack = sent.plan();
  GOSSAMER_TRY_STATUS(run_and_keep(setup, request.folder, sent));
  const Updates updates(setup, sent, request.rounds);
  GOSSAMER_TRY(const SampleAttack samples, SampleAttack::prepare(setup));
  const gossip::Round last = request.rounds - 1;
  const auto& data = *setup.workload->spec().data;
  leak.sample_shape = {data.channels, data.height, data.width};
  for (const std::vector<int>& group : request.observers) {
    const double similarity = request.similarity ? *request.similarity : updates.similarity(group);
    const Reconstruction known(*setup.schedule, group, request.rounds, similarity);
    ObserverLeak learned = observe(setup, request, known, group);
    learned.similarity = similarity;
    for (LeakedUpdate& update : learned.updates) {
      const std::vector<double> estimate = updates.estimate(known, update.peer, update.round);
      update.cosine = cosine(estimate, updates.of(update.peer, update.round));
      if (std::ranges::count(known.rows(), theory::SentRow{update.peer, last}) > 0)
        update.membership = samples.membership(sent.row(update.peer, last), update.peer);
      auto best = samples.attack(estimate, update);
      if (best && leak.shown.size() < kMostShown)
        leak.shown.push_back({group, update.peer, best->sample, best->psnr,
                              samples.original(best->sample), std::move(best->features)});
    }
    leak.observers.push_back(std::move(learned));
  }
  return leak;
}

Status write_shown_samples(const std::filesystem::path& path, const Leak& leak) {
  std::vector<float> original, recovered;
  for (const ShownSample& shown : leak.shown) {
    original.insert(original.end(), shown.original.begin(), shown.original.end());
    recovered.insert(recovered.end(), shown.recovered.begin(), shown.recovered.end());
  }
  std::vector<std::int64_t> shape{static_cast<std::int64_t>(leak.shown.size())};
  shape.insert(shape.end(), leak.sample_shape.begin(), leak.sample_shape.end());
  return write_safetensors(path, {{"original", shape, original}, {"recovered", shape, recovered}},
                           {});
}

}  // namespace gossamer::peer
