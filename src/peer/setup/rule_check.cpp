#include "peer/setup/rule_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace gossamer::peer {
namespace {

/// Rounds that are looked at of a random schedule, whose rounds are alike.
constexpr int kRandomRounds = 10;

/// A rule other than the mean against an algorithm that does not only mix.
Status check_rule_algorithm(const std::string& rule, const std::string& name,
                            const gossip::Algorithm& algorithm,
                            const topology::MixingSchedule& schedule) {
  const gossip::AlgorithmRequirements needs = algorithm.requirements();
  const auto rows = algorithm.rows(schedule);
  constexpr const char* remedy =
      "set mixing.rule = mean, or choose an algorithm that only mixes (dpsgd, qg_momentum, "
      "consensus)";
  if (!needs.mixing_matrix || std::ranges::none_of(rows, &gossip::RowSpec::mixed))
    return invalid_error(
        fmt::format("mixing.rule: '{}' does not mix rows by W, so '{}' would have no effect; {}",
                    name, rule, remedy));
  // Row 0 is x. Its mean is what `consensus` is about, and a rule moves it as little as it can.
  if (std::any_of(rows.begin() + 1, rows.end(), [](const auto& row) { return row.conserved_sum; }))
    return invalid_error(
        fmt::format("mixing.rule: '{}' conserves a sum over the peers, and '{}' conserves none; {}",
                    name, rule, remedy));
  if (needs.fixed_matrix)
    return invalid_error(
        fmt::format("mixing.rule: '{}' needs a W that is the same in every round, and '{}' weighs "
                    "rows by their values; {}",
                    name, rule, remedy));
  if (!needs.tolerates_peer_loss)
    return invalid_error(
        fmt::format("mixing.rule: '{}' needs the exact means of W, and '{}' gives others; {}", name,
                    rule, remedy));
  return {};
}

Status check_hostile(const Setup& setup, const gossip::RuleKind& kind) {
  const int hostile = setup.rule.hostile, needed = kind.least_neighbours(hostile);
  const auto [peer, neighbours, round] = fewest_neighbours(*setup.schedule);
  if (hostile == 0 || needed <= neighbours || setup.config.run.peers < 2) return {};
  const int most = kind.most_hostile(neighbours);
  return invalid_error(
      fmt::format("mixing.hostile: to withstand {} hostile neighbour{}, '{}' needs {} neighbours "
                  "of every peer, "
                  "and on '{}' peer {} has {} in round {}; set mixing.hostile = {}{}, or choose a "
                  "topology with "
                  "more neighbours (complete, torus)",
                  hostile, hostile == 1 ? "" : "s", kind.name, needed, setup.config.topology.kind,
                  peer, neighbours, round, most, most == 0 ? ", which withstands none" : ""));
}

/// A peer that never weighs its own row by less than 1/2 would never mix.
Status check_own_weights(const Setup& setup, const gossip::RuleKind& kind) {
  if (!kind.majority_decides) return {};
  const std::vector<const topology::MixingSchedule*> parts = setup.schedule->parts();
  for (std::size_t k = 0; k < parts.size(); ++k) {
    const int period = parts[k]->period() > 0 ? parts[k]->period() : kRandomRounds;
    std::map<int, double> least;
    for (int t = 0; t < period; ++t) {
      const auto w = parts[k]->at(static_cast<gossip::Round>(t));
      for (int i = 0; i < w->peers(); ++i) {
        if (w->in_neighbours(i).empty()) continue;
        double& known = least.try_emplace(i, 1.0).first->second;
        known = std::min(known, w->self_weight(i));
      }
    }
    for (const auto& [i, weight] : least)
      if (weight > 0.5 - 1e-9)
        return invalid_error(fmt::format(
            "mixing.rule: '{}' of rows of which one weighs 1/2 or more is that row, and on '{}' "
            "peer {} weighs its own by {:.3g} at least, so it would never mix; {}choose a topology "
            "with more neighbours (complete, torus), or another rule",
            kind.name, setup.config.topology.kind,
            setup.schedule->participants().changes()[k].peers[static_cast<std::size_t>(i)], weight,
            setup.config.topology.weights.lazy ? "set topology.lazy = false, or " : ""));
  }
  return {};
}

}  // namespace

FewestNeighbours fewest_neighbours(const topology::MixingSchedule& schedule) {
  FewestNeighbours found;
  const std::vector<const topology::MixingSchedule*> parts = schedule.parts();
  for (std::size_t k = 0; k < parts.size(); ++k) {
    const topology::ParticipantChange& change = schedule.participants().changes()[k];
    const int period = parts[k]->period() > 0 ? parts[k]->period() : kRandomRounds;
    for (int t = 0; t < period; ++t) {
      const auto w = parts[k]->at(static_cast<gossip::Round>(t));
      for (int i = 0; i < w->peers(); ++i) {
        const int neighbours = static_cast<int>(w->in_neighbours(i).size());
        if (neighbours == 0 || (found.neighbours > 0 && neighbours >= found.neighbours)) continue;
        found.peer = change.peers[static_cast<std::size_t>(i)];
        found.neighbours = neighbours;
        found.round = change.first + static_cast<gossip::Round>(t);
      }
    }
  }
  return found;
}

Status check_rule(const Setup& setup, const gossip::RuleKind& kind) {
  if (setup.rule.is_mean()) return {};
  const Config& config = setup.config;
  GOSSAMER_TRY_STATUS(
      check_rule_algorithm(kind.name, config.algorithm.kind, *setup.algorithm, *setup.schedule));
  if (setup.schedule->weighing().only_columns())
    return invalid_error(
        fmt::format("topology.weights: with out_degree the rows of W do not sum to 1, and '{}' "
                    "mixes by differences; set topology.weights = auto, or mixing.rule = mean",
                    kind.name));
  if (setup.schedule->weighing().allow_negative)
    return invalid_error(
        fmt::format("topology.allow_negative: '{}' is defined for weights ≥ 0; set "
                    "topology.allow_negative = false, or mixing.rule = mean",
                    kind.name));
  if (setup.rule.reads_losses() && config.model.kind == kExternalModel)
    return invalid_error(fmt::format(
        "mixing.rule: '{}' measures losses of neighbours' rows on the peer's samples, and the "
        "program of model.kind = external brings its own; choose another rule (cs_plus, clipped)",
        kind.name));
  if (setup.codec->fidelity() != gossip::Fidelity::exact)
    return invalid_error(fmt::format(
        "codec.kind: '{}' rounds the rows that '{}' compares; set codec.kind = none, or "
        "mixing.rule = mean",
        config.codec.kind, kind.name));
  GOSSAMER_TRY_STATUS(check_own_weights(setup, kind));
  return check_hostile(setup, kind);
}

}  // namespace gossamer::peer
