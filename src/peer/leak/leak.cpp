#include "peer/leak/leak.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <utility>

#include "base/temporary_folder.hpp"
#include "peer/leak/sent_rows.hpp"
#include "peer/leak/updates.hpp"
#include "peer/runtime/run.hpp"
#include "peer/storage/files.hpp"
#include "peer/storage/safetensors.hpp"
#include "theory/reconstruction.hpp"

namespace gossamer::peer {
namespace {

using theory::Reconstruction;

/// Doubles that the attack may keep beside the rows of the run.
constexpr std::size_t kMostValues = std::size_t{1} << 28;

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

/// The numbers of rounds below `rounds` of which an attacker tries the rows too: an estimate from
/// few rows has parts of few other updates.
std::vector<gossip::Round> shorter(gossip::Round rounds) {
  std::vector<gossip::Round> tried;
  for (gossip::Round t = 1; t < rounds; t += std::max<gossip::Round>(1, t / 3)) tried.push_back(t);
  return tried;
}

/// The run up to the last round that is observed. It leaves no file.
Status run_and_keep(const Setup& setup, const LeakRequest& request, const SentRows& sent) {
  GOSSAMER_TRY(const TemporaryFolder folder, TemporaryFolder::make());
  RunRequest run_request;
  run_request.folder = folder.path() / "run";
  run_request.interrupted = [&] { return sent.complete() || request.interrupted(); };
  GOSSAMER_TRY(const RunOutcome outcome, run(setup, std::move(run_request)));
  if (request.interrupted()) return Error{ErrorKind::interrupted, "interrupted"};
  if (sent.complete()) return {};
  if (outcome.stopped) return *outcome.stopped;
  return invalid_error(fmt::format(
      "topology.kind = '{}': with codec.kind = {} a peer that has no neighbour in a round "
      "makes no message, and gossamer leak needs one of every peer; set codec.kind = none, "
      "or choose a topology without idle peers",
      setup.config.topology.kind, setup.config.codec.kind));
}

/// Of exact rows: coding errors are known after a run only.
theory::RowModel model_of(const Config& config, const LeakRequest& request) {
  theory::RowModel model{.similarity = request.similarity};
  if (config.algorithm.kind == "choco")
    model.consensus_rate = std::get<double>(config.algorithm.values.at("consensus_rate"));
  return model;
}

/// What the group can explain, without a run.
ObserverLeak observe(const Setup& setup, const LeakRequest& request, const Reconstruction& known,
                     const std::vector<int>& group) {
  ObserverLeak leak{group, {}};
  const std::vector<int> hops = distances(*setup.schedule, request.rounds, group);
  for (int peer = 0; peer < setup.workers(); ++peer) {
    if (std::ranges::binary_search(group, peer)) continue;
    const gossip::Round round = known.best_round(peer);
    leak.peers.push_back(
        {peer, hops[static_cast<std::size_t>(peer)], round, known.share(peer, round)});
  }
  return leak;
}

/// 1 − ‖estimate − update‖² / ‖update‖².
double explained(std::span<const double> estimate, std::span<const double> update) {
  double error = 0, square = 0;
  for (std::size_t k = 0; k < update.size(); ++k) {
    error += (estimate[k] - update[k]) * (estimate[k] - update[k]);
    square += update[k] * update[k];
  }
  return square > 0 ? 1 - error / square : 0;
}

/// The attacks on the rows of a run.
struct Attacker {
  const Setup& setup;
  const LeakRequest& request;
  const SentRows& sent;
  const Updates& updates;
  const SampleAttack& samples;
  const theory::RowModel& exact;

  ObserverLeak attack(const std::vector<int>& group) const {
    theory::RowModel model = exact;
    model.noise = std::max(model.noise, updates.noise(group));
    const Reconstruction known(*setup.schedule, group, request.rounds, model);
    ObserverLeak leak = observe(setup, request, known, group);
    for (LeakedPeer& peer : leak.peers) {
      peer.explained = explained(updates.estimate(known, peer.peer, peer.round),
                                 updates.of(peer.peer, peer.round));
      const auto from_last = std::views::reverse(known.rows());  // by round
      const auto row = std::ranges::find(from_last, peer.peer, &theory::SentRow::peer);
      if (row != from_last.end())
        peer.membership = samples.membership(sent.guessed(row->peer, row->t), peer.peer);
      if (request.inversion > 0 && !request.interrupted()) {
        peer.inverted = samples.invert(updates.estimate(known, peer.peer, 0), peer.peer);
        peer.inverted->rounds = request.rounds;
      }
    }
    if (!samples.possible()) return leak;
    for (const gossip::Round rounds : shorter(request.rounds))
      read(Reconstruction(*setup.schedule, group, rounds, model), rounds, leak);
    read(known, request.rounds, leak);
    return leak;
  }

 private:
  /// Reads samples off estimates from the rows of `rounds` rounds, and keeps the better outcomes.
  void read(const Reconstruction& known, gossip::Round rounds, ObserverLeak& leak) const {
    for (LeakedPeer& peer : leak.peers) {
      if (request.interrupted()) return;
      const gossip::Round t = known.best_round(peer.peer);
      auto outcomes = samples.attack(updates.estimate(known, peer.peer, t), peer.peer, t);
      keep_better(peer.samples, std::move(outcomes.found), rounds);
      if (outcomes.control) keep_better(peer.control, std::move(*outcomes.control), rounds);
    }
  }
  static void keep_better(std::optional<SampleOutcome>& kept, SampleOutcome outcome,
                          gossip::Round rounds) {
    outcome.rounds = rounds;
    if (!kept || outcome.is_better_than(*kept)) kept = std::move(outcome);
  }
};

/// Of all that was found of a peer's samples.
std::optional<RecoveredSample> best_sample(const LeakedPeer& peer) {
  std::optional<RecoveredSample> best;
  for (const auto& outcome : {peer.samples, peer.inverted})
    if (outcome && outcome->best && (!best || outcome->best->psnr > best->psnr))
      best = outcome->best;
  return best;
}

}  // namespace

Result<Leak> leak(Config config, const LeakRequest& request) {
  GOSSAMER_TRY_STATUS(check_leak(config, request));
  Leak leak;
  leak.settings = config.to_toml();
  config.log.every = 0;
  config.checkpoint.every = 0;
  GOSSAMER_TRY(Setup setup, make_setup(std::move(config)));
  const theory::RowModel model = model_of(setup.config, request);
  if (!request.trains) {
    for (const std::vector<int>& group : request.observers)
      leak.groups.push_back(observe(
          setup, request, Reconstruction(*setup.schedule, group, request.rounds, model), group));
    return leak;
  }
  if (!setup.trains() || setup.workload->spec().data == nullptr)
    return invalid_error("the run trains nothing, so its rows tell nothing");
  const std::size_t values_of_round =
      3 * static_cast<std::size_t>(setup.workers()) * setup.parameters;
  if (values_of_round * request.rounds > kMostValues)
    return invalid_error(fmt::format(
        "the rows of {} peers with {} parameters take too much memory; {}", setup.workers(),
        setup.parameters,
        values_of_round > kMostValues
            ? std::string("attack a run with fewer peers or a smaller model")
            : fmt::format("observe {} rounds or fewer", kMostValues / values_of_round)));

  SentRows sent(setup.workers(), request.rounds);
  sent.listen(setup);
  GOSSAMER_TRY_STATUS(run_and_keep(setup, request, sent));
  const Updates updates(setup, sent, request.rounds, model.consensus_rate);
  GOSSAMER_TRY(const SampleAttack samples,
               SampleAttack::make(setup, request.rounds, request.inversion));
  const auto& data = *setup.workload->spec().data;
  leak.sample_shape = {data.channels, data.height, data.width};
  leak.reads_samples = samples.possible();
  const Attacker attacker{setup, request, sent, updates, samples, model};
  for (const std::vector<int>& group : request.observers) {
    if (request.interrupted()) return Error{ErrorKind::interrupted, "interrupted"};
    leak.groups.push_back(attacker.attack(group));
    for (const LeakedPeer& peer : leak.groups.back().peers)
      if (const auto best = best_sample(peer); best && leak.shown.size() < kMostShown) {
        const auto original = data.features_of(best->sample);
        leak.shown.push_back({group, peer.peer, *best, {original.begin(), original.end()}});
      }
  }
  if (request.interrupted()) return Error{ErrorKind::interrupted, "interrupted"};
  return leak;
}

Status write_leak(const std::filesystem::path& folder, const LeakRequest& request,
                  const Leak& leak) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return data_error(
        fmt::format("{}: the folder cannot be made: {}", folder.string(), error.message()));
  GOSSAMER_TRY_STATUS(
      write_file(folder / "leak.json", text_of(leak_json(request, leak), 2) + "\n"));
  GOSSAMER_TRY_STATUS(write_file(folder / "resolved.toml", leak.settings));
  const std::filesystem::path path = folder / "samples.safetensors";
  if (leak.shown.empty()) {
    std::error_code ignored;  // there is none, or it stays
    std::filesystem::remove(path, ignored);
    return {};
  }
  std::vector<float> original, recovered;
  for (const ShownSample& shown : leak.shown) {
    original.insert(original.end(), shown.original.begin(), shown.original.end());
    const std::vector<float>& features = shown.recovered.features;
    recovered.insert(recovered.end(), features.begin(), features.end());
  }
  std::vector<std::int64_t> shape{static_cast<std::int64_t>(leak.shown.size())};
  shape.insert(shape.end(), leak.sample_shape.begin(), leak.sample_shape.end());
  return write_safetensors(path, {{"original", shape, original}, {"recovered", shape, recovered}},
                           {});
}

}  // namespace gossamer::peer
