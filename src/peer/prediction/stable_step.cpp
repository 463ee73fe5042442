#include "peer/prediction/stable_step.hpp"

#include <fmt/format.h>

#include "gossip/policy.hpp"
#include "topology/report.hpp"
#include "topology/spectrum.hpp"

namespace gossamer::peer {
namespace {

/// Under gradient tracking in the order atc, a 4 × 4 torus is worth it (1.9), and a ring is not.
constexpr double kWorthALazyMatrix = 1.5;

}  // namespace

std::optional<StableStep> stable_step(const Setup& setup) {
  const Config& config = setup.config;
  const topology::MixingSchedule& schedule = *setup.schedule;
  const bool quick = config.run.peers <= topology::kQuickGapStatic || !schedule.lattice().empty();
  const gpu::UpdateRule& rule = config.optimizer.rule;
  const bool plain = rule.kind == gpu::UpdateRule::Kind::sgd && rule.momentum == 0;
  const bool known = setup.algorithm->largest_stable_step(0).has_value();
  if (!known || !quick || !plain || !gossip::is_lockstep(config.exchange.kind()) ||
      !setup.rule.is_mean() || !setup.algorithm->requirements().mixing_matrix ||
      !setup.algorithm->requirements().trainer)
    return std::nullopt;
  const std::optional<double> lowest = topology::lowest_eigenvalue(schedule);
  if (!lowest) return std::nullopt;
  const auto largest = setup.algorithm->largest_stable_step(*lowest),
             lazy = setup.algorithm->largest_stable_step((1 + *lowest) / 2);
  if (!largest || !lazy) return std::nullopt;
  return StableStep{*largest, *lowest, *lazy};
}

std::string stable_step_warning(const Setup& setup) {
  // Every run asks: eigenvalues are computed only where they decide.
  const gossip::Algorithm& algorithm = *setup.algorithm;
  if (algorithm.largest_stable_step(-1) == algorithm.largest_stable_step(1)) return "";
  const auto step = stable_step(setup);
  if (!step || step->largest_if_lazy < kWorthALazyMatrix * step->largest) return "";
  return fmt::format(
      "the lowest eigenvalue of W is {:.3f}, so '{}' is stable for steps up to {:.3g} / L only, "
      "where L is the largest curvature of the loss; topology.lazy = true allows {:.3g} / L",
      step->lowest_eigenvalue, setup.config.algorithm.kind, step->largest, step->largest_if_lazy);
}

}  // namespace gossamer::peer
