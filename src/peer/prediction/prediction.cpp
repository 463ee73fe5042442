#include "peer/prediction/prediction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "gossip/link.hpp"
#include "peer/attack/attack_check.hpp"
#include "peer/prediction/quadratic_run.hpp"
#include "peer/privacy/privacy_plan.hpp"
#include "peer/setup/rule_check.hpp"
#include "theory/decay.hpp"
#include "theory/privacy_accountant.hpp"
#include "topology/spectrum.hpp"

namespace gossamer::peer {
namespace {

std::vector<gossip::Round> curve_rounds(const Config& config) {
  const std::uint64_t last = config.run.rounds,
                      every = static_cast<std::uint64_t>(config.log.every);
  std::vector<gossip::Round> rounds;
  if (every > 0) {
    const std::uint64_t stride = every * (last / every / kMaxPoints + 1);
    for (std::uint64_t t = 0; t < last; t += stride) rounds.push_back(t);
  } else if (last > 0) {
    rounds.push_back(0);
  }
  rounds.push_back(last);
  return rounds;
}

/// With an algorithm that mixes, all messages of an exchange have the same length, so the number of
/// chunks, and thereby of headers, is known.
void predict_bytes(const Setup& setup, Prediction& prediction) {
  const auto period = static_cast<gossip::Round>(setup.schedule->period());
  const gossip::Round rounds = setup.config.run.rounds;
  const auto unknown = [&prediction](const std::string& why) {
    prediction.not_known.push_back("bytes of the whole run: " + why);
  };
  if (!setup.algorithm->requirements().mixing_matrix)
    return unknown(fmt::format("'{}' does not send whole rows to all neighbours",
                               setup.config.algorithm.kind));
  if (setup.algorithm->multiplies_matrices())
    return unknown(
        fmt::format("the messages of '{}' have lengths that change from product to product",
                    setup.config.algorithm.kind));
  if (!gossip::is_lockstep(setup.config.exchange.kind()))
    return unknown(fmt::format("under policy {} it depends on which rows arrive in time",
                               setup.config.exchange.policy));
  if (period == 0) return unknown("W is drawn at random in each round");
  const std::uint64_t chunk = static_cast<std::uint64_t>(setup.config.net.chunk_kib) * 1024;
  std::uint64_t bytes = 0;
  for (gossip::Round t = 0; t < std::min(period, rounds); ++t) {
    const std::uint64_t times = rounds / period + (t < rounds % period ? 1 : 0);
    const auto w = setup.schedule->at(t);
    for (const gossip::ExchangeVolume& volume :
         setup.algorithm->communication(*setup.schedule, *w, setup.parameters)) {
      const std::uint64_t payload = setup.codec->words(volume.message) * sizeof(float);
      std::uint64_t messages = 0;
      for (int i = 0; i < w->peers(); ++i) messages += volume.of(i).sent / volume.message;
      bytes += times * messages *
               (payload + (payload + chunk - 1) / chunk * gossip::kFrameOverheadBytes);
    }
  }
  prediction.bytes_sent = bytes;
}

void predict_decay(const Setup& setup, Prediction& prediction) {
  if (!gossip::is_lockstep(setup.config.exchange.kind())) {
    prediction.not_known.push_back(
        fmt::format("curve: under policy {} it depends on which rows arrive in time",
                    setup.config.exchange.policy));
  } else if (auto decay =
                 theory::consensus_decay(*setup.schedule, setup.parameters, prediction.rounds)) {
    prediction.consensus_distance = std::move(decay->distance);
    prediction.sampled = decay->sampled;
  } else {
    prediction.not_known.emplace_back(
        "curve: it would take too long to compute for this number of rounds and peers");
  }
}

void predict_training(const Setup& setup, Prediction& prediction) {
  const auto run = quadratic_run(setup, prediction.rounds);
  if (!run.ok()) return prediction.not_known.push_back(run.error().message);
  theory::QuadraticOutcome outcome = theory::predict(*run);
  for (const theory::Distances& point : outcome.curve) {
    prediction.consensus_distance.push_back(point.consensus);
    prediction.distance_to_optimum.push_back(point.optimum);
  }
  prediction.rate = outcome.rate;
  prediction.limit = outcome.limit;
  prediction.bias = outcome.bias;
  prediction.not_known.insert(prediction.not_known.end(), outcome.not_known.begin(),
                              outcome.not_known.end());
}

/// Shards of other processes are not known, and left out.
std::optional<PredictedPrivacy> predict_privacy(const Setup& setup) {
  const auto& plan = setup.workload->spec().privacy;
  if (!plan) return std::nullopt;
  PredictedPrivacy predicted{plan->options};
  std::set<std::pair<std::size_t, double>> seen;
  for (int peer = 0; peer < setup.workers(); ++peer) {
    const std::size_t shard = setup.workload->trainer()->shard_size(peer);
    const double noise = plan->effective_noise.at(static_cast<std::size_t>(peer));
    if (shard == 0 || !seen.emplace(shard, noise).second) continue;
    const double epsilon =
        theory::PrivacyAccountant(sampling_of(setup.config.shards, shard), noise)
            .epsilon(planned_steps(setup.config, *setup.algorithm, shard), plan->options.delta);
    if (epsilon > predicted.epsilon)
      predicted.epsilon = epsilon, predicted.peer = peer, predicted.effective_noise = noise;
  }
  return predicted;
}

Json privacy_json(const PredictedPrivacy& privacy) {
  return {{"epsilon", privacy.epsilon},
          {"delta", privacy.options.delta},
          {"peer", privacy.peer},
          {"noise_multiplier", privacy.options.noise_multiplier},
          {"pair_noise", privacy.options.pair_noise},
          {"colluding", privacy.options.pair_noise > 0 ? Json(privacy.options.colluding) : Json()},
          {"effective_noise", privacy.effective_noise},
          {"clip", privacy.options.clip}};
}

std::string privacy_text(const PredictedPrivacy& privacy) {
  const train::PrivacyOptions& options = privacy.options;
  std::string pairs;
  if (options.pair_noise > 0)
    pairs =
        fmt::format(", as good as {:.4g} with the noise of pairs, against {} colluding peer{}",
                    privacy.effective_noise, options.colluding, options.colluding == 1 ? "" : "s");
  return fmt::format(
      "epsilon {:.4g} at delta {} after all rounds (peer {}); noise multiplier {:.4g}{}{}",
      privacy.epsilon, options.delta, privacy.peer, options.noise_multiplier, pairs,
      options.noise == "secret" ? "" : "; only if the noise were secret");
}

Json numbers(const std::vector<double>& values) {
  if (values.empty()) return {};
  Json list = Json::array();
  for (const double value : values) list.push_back(finite_or_null(value));
  return list;
}

Json distances_json(const std::optional<theory::Distances>& distances) {
  if (!distances) return {};
  return {{"distance_to_optimum", finite_or_null(distances->optimum)},
          {"consensus_distance", finite_or_null(distances->consensus)}};
}

template <class Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

std::string limit_text(const Prediction& prediction) {
  const theory::Distances &limit = *prediction.limit, &bias = *prediction.bias;
  const std::string where = fmt::format("{:.4g} from the optimum (relative), {:.4g} from consensus",
                                        limit.optimum, limit.consensus);
  if (limit.optimum == 0) return "exactly at the optimum";
  if (limit.optimum == bias.optimum) return where;
  return fmt::format("{}; without noise {}", where,
                     bias.optimum == 0 ? "at the optimum" : fmt::format("{:.4g}", bias.optimum));
}

/// The hostile neighbours that the rule withstands on the graph.
std::string breakdown_text(const Setup& setup) {
  const gossip::RuleKind kind = gossip::find_rule(setup.config.mixing.kind).value();
  const auto [peer, neighbours, round] = fewest_neighbours(*setup.schedule);
  const int most = kind.most_hostile(neighbours);
  return fmt::format(
      "{} hostile neighbour{} of each peer at most ({}: peer {} has {} in round {}; {}){}; "
      "mixing.hostile = {}",
      most, most == 1 ? "" : "s", kind.name, peer, neighbours, round, kind.source,
      kind.guarantee.empty() ? "" : "; " + kind.guarantee, setup.rule.hostile);
}

std::string step_text(const StableStep& step) {
  return fmt::format(
      "{:.3g} / L, where L is the largest curvature; W's lowest eigenvalue is {:.3g}", step.largest,
      step.lowest_eigenvalue);
}

/// The curve as a table of at most `points` rows; empty if there is none.
std::string curve_text(const Prediction& prediction, std::size_t points) {
  std::string text;
  const std::size_t count = prediction.consensus_distance.size();
  if (count > 0)
    text += fmt::format("  {:>10}  {:>18}{}{}\n", "round", "consensus distance",
                        prediction.distance_to_optimum.empty() ? "" : "  distance to optimum",
                        prediction.sampled ? "  (sampled)" : "");
  const std::size_t shown = std::min(points, count);
  for (std::size_t p = 0; p < shown; ++p) {
    const std::size_t i = shown == 1 ? 0 : p * (count - 1) / (shown - 1);
    text +=
        fmt::format("  {:>10}  {:>18.4g}", prediction.rounds[i], prediction.consensus_distance[i]);
    if (!prediction.distance_to_optimum.empty())
      text += fmt::format("  {:>19.4g}", prediction.distance_to_optimum[i]);
    text += "\n";
  }
  return text;
}

std::string round_text(const RoundTime& round) {
  std::string text =
      fmt::format("{:.4g} s of virtual time: {:.4g} training", round.seconds(), round.training);
  if (round.overlapped > 0) text += fmt::format(", {:.4g} overlapped exchange", round.overlapped);
  if (round.exposed > 0) text += fmt::format(", {:.4g} exposed exchange", round.exposed);
  if (round.exposed + std::max(0.0, round.overlapped - round.training) > round.training)
    text += "; communication dominates";
  return text;
}

}  // namespace

std::string hostile_bound_text(const std::optional<theory::HostileBounds>& bounds,
                               theory::HostileBound theory::HostileBounds::* rule,
                               const topology::MixingSchedule& schedule) {
  if (!bounds) {
    const std::string reason = theory::no_hostile_bounds(schedule);
    return "not known: " + (reason.empty() ? "W is too large" : reason);
  }
  const theory::HostileBound& bound = (*bounds).*rule;
  const std::string weight = fmt::format("below {:.3g} in each row: ", bound.weight);
  if (bound.neighbours == 0) return weight + "no neighbour";
  return weight + fmt::format("any {} neighbour{} of each peer", bound.neighbours,
                              bound.neighbours == 1 ? "" : "s");
}

Status check_predictable(const Config& config) {
  if (!config.run.participants.empty())
    return invalid_error(
        "run.participants: theory describes runs with the same peers in all rounds; remove it to "
        "predict such a run");
  const std::string refusal = attack_refusal(config);
  if (refusal.empty()) return {};
  return invalid_error(refusal + "; set attack.kind = none, and remove the other keys of [attack]");
}

Prediction predict(const Setup& setup, double decay) {
  Prediction prediction;
  prediction.rounds = curve_rounds(setup.config);
  prediction.spectral_gap = setup.report().spectral_gap;
  if (setup.algorithm->requirements().mixing_matrix) {
    if (std::isnan(prediction.spectral_gap))
      prediction.spectral_gap = topology::spectral_gap(*setup.schedule);
    prediction.convergence = topology::predict_convergence(*setup.schedule, prediction.spectral_gap,
                                                           setup.parameters, decay);
  }
  if (!setup.rule.is_mean() && !std::isnan(setup.report().spectral_gap))  // not too costly to find
    prediction.hostile = theory::hostile_bounds(*setup.schedule);
  predict_bytes(setup, prediction);
  prediction.round = round_time(setup);
  prediction.step = stable_step(setup);
  prediction.privacy = predict_privacy(setup);
  prediction.split = split_costs(setup);
  if (!setup.rule.is_mean())
    prediction.not_known.push_back(
        fmt::format("curve: the mixing rule '{}' is not linear in the rows; the spectral gap and "
                    "the lines on mixing are those of the mean",
                    setup.config.mixing.kind));
  else if (prediction.privacy)
    prediction.not_known.emplace_back("curve: clipped gradients are not linear in the rows");
  else if (setup.codec->fidelity() != gossip::Fidelity::exact)
    prediction.not_known.push_back(fmt::format(
        "curve: the errors of the codec '{}' are not linear in the rows", setup.config.codec.kind));
  else if (setup.algorithm->requirements().trainer) predict_training(setup, prediction);
  else predict_decay(setup, prediction);
  return prediction;
}

Json prediction_json(const Setup& setup, const Prediction& prediction) {
  Json json;
  json["schema"] = 1;
  json["run_id"] = setup.config.run_id();
  json["peers"] = setup.config.run.peers;
  json["algorithm"] = setup.config.algorithm.kind;
  json["topology"] = setup.config.topology.kind;
  json["parameters"] = setup.parameters;
  const bool curve = !prediction.consensus_distance.empty();
  json["rounds"] = curve ? Json(prediction.rounds) : Json();
  json["consensus_distance"] = numbers(prediction.consensus_distance);
  json["distance_to_optimum"] = numbers(prediction.distance_to_optimum);
  json["sampled"] = prediction.sampled;
  json["rate"] = or_null(prediction.rate);
  json["stable"] = prediction.rate ? Json(*prediction.rate < 1) : Json();
  json["stable_step"] = {};
  if (const auto& step = prediction.step)
    json["stable_step"] = {{"largest", step->largest},
                           {"largest_if_lazy", step->largest_if_lazy},
                           {"lowest_eigenvalue", step->lowest_eigenvalue}};
  json["limit"] = distances_json(prediction.limit);
  json["limit_without_noise"] = distances_json(prediction.bias);
  json["mixing"] = {};
  if (const auto& convergence = prediction.convergence)
    json["mixing"] = {{"spectral_gap", finite_or_null(prediction.spectral_gap)},
                      {"rounds_to_exact", or_null(convergence->rounds_to_exact)},
                      {"rounds_to_millionth", or_null(convergence->rounds_to_millionth)},
                      {"decay", convergence->decay},
                      {"effective_neighbours", finite_or_null(convergence->effective_neighbours)}};
  if (!setup.rule.is_mean()) {
    const auto& bounds = prediction.hostile;
    json["hostile_weight_bound"] = bounds ? Json(bounds->clipped.weight) : Json();
    json["cs_plus_weight_bound"] = bounds ? Json(bounds->cs_plus.weight) : Json();
    json["most_hostile_neighbours"] =
        gossip::find_rule(setup.config.mixing.kind)
            ->most_hostile(fewest_neighbours(*setup.schedule).neighbours);
  }
  json["bytes_per_round_per_peer"] = setup.report().bytes_per_round_per_peer;
  json["bytes_sent"] = or_null(prediction.bytes_sent);
  json["round_seconds"] = {};
  if (const auto& round = prediction.round)
    json["round_seconds"] = {{"total", round->seconds()},
                             {"training", round->training},
                             {"exchange_overlapped", round->overlapped},
                             {"exchange_exposed", round->exposed}};
  if (prediction.privacy) json["privacy"] = privacy_json(*prediction.privacy);
  if (prediction.split) json["split"] = split_json(*prediction.split);
  json["not_known"] = prediction.not_known;
  return json;
}

std::string prediction_text(const Setup& setup, const Prediction& prediction, std::size_t points) {
  const Config& config = setup.config;
  std::string text =
      fmt::format("{} of {} peers, {}, {} parameters each, {} rounds\n", config.algorithm.kind,
                  config.run.peers, config.topology.kind, setup.parameters, config.run.rounds);
  const auto line = [&text](std::string_view name, const std::string& value) {
    text += fmt::format("  {:<30}{}\n", name, value);
  };
  const auto rounds = [](const std::optional<gossip::Round>& count, const char* none) {
    return count ? fmt::format("after {} round{}", *count, *count == 1 ? "" : "s") : none;
  };
  if (prediction.rate)
    line("stable",
         *prediction.rate < 1
             ? fmt::format("yes: in the long run an error is multiplied by {:.6g} per round",
                           *prediction.rate)
             : fmt::format("no: errors grow by {:.6g} per round; use a smaller optimizer.rate",
                           *prediction.rate));
  if (prediction.step) line("largest stable step", step_text(*prediction.step));
  if (prediction.limit) line("limit", limit_text(prediction));
  if (const auto& convergence = prediction.convergence) {
    line("spectral gap", std::isnan(prediction.spectral_gap)
                             ? "not known"
                             : fmt::format("{:.6g}", prediction.spectral_gap));
    line("mixing alone averages", convergence->rounds_to_exact
                                      ? "exactly, " + rounds(convergence->rounds_to_exact, "")
                                      : "never exactly");
    line("mixing alone to a millionth", rounds(convergence->rounds_to_millionth, "not known"));
    line("effective neighbours",
         std::isnan(convergence->effective_neighbours)
             ? "not known"
             : fmt::format("{:.4g} (γ = {})", convergence->effective_neighbours,
                           convergence->decay));
  }
  if (!setup.rule.is_mean()) {
    line("withstands", breakdown_text(setup));
    line("hostile weight, ClippedGossip",
         hostile_bound_text(prediction.hostile, &theory::HostileBounds::clipped, *setup.schedule));
    line("hostile weight, CS+",
         hostile_bound_text(prediction.hostile, &theory::HostileBounds::cs_plus, *setup.schedule));
  }
  if (prediction.privacy) line("privacy", privacy_text(*prediction.privacy));
  line("sent per round and peer",
       fmt::format("{} bytes (payload, busiest peer)", setup.report().bytes_per_round_per_peer));
  if (prediction.bytes_sent)
    line("sent in the whole run", fmt::format("{} bytes, with headers", *prediction.bytes_sent));
  if (prediction.round && prediction.round->seconds() > 0)
    line("duration of a round", round_text(*prediction.round));
  if (prediction.split)
    for (const auto& [name, value] : split_lines(*prediction.split)) line(name, value);
  text += curve_text(prediction, points);
  for (const std::string& reason : prediction.not_known)
    text += fmt::format("  not predicted: {}\n", reason);
  return text;
}

}  // namespace gossamer::peer
