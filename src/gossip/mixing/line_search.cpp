#include "gossip/mixing/line_search.hpp"

#include <algorithm>
#include <set>

#include "base/check.hpp"
#include "gpu/cpu_device.hpp"

namespace gossamer::gossip {
namespace {

double squared_distance(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t k = 0; k < a.size(); ++k) sum += (a[k] - b[k]) * (a[k] - b[k]);
  return sum;
}

/// The mix of one receiver, as a function of what its hostile neighbours send.
class AttackedMix {
 public:
  AttackedMix(const Attack& attack, const AttackView& view, int receiver, const MixingRule* rule)
      : rule_(rule), at_0_(attack.message(view, receiver, 0)) {
    direction_ = attack.message(view, receiver, 1);
    for (std::size_t k = 0; k < at_0_.size(); ++k) direction_[k] -= at_0_[k];
    add(view, receiver, 1, false);
    for (const topology::Neighbour& neighbour : view.w.in_neighbours(receiver))
      add(view, neighbour.peer, neighbour.weight, view.is_hostile(neighbour.peer));
    for (std::size_t j = 1; j < rows(); ++j) {
      weights_[0] -= weights_[j];
      honest_weights_[0] -= honest_weights_[j];
    }
    weights_[0] = std::max(0.0, weights_[0]);
    if (rule == nullptr || !std::holds_alternative<RankRule>(rule->function)) measure();
    else target_ = combined(honest_weights_);
  }

  /// The square of what the search maximises.
  double harm(double strength) const {
    if (rule_ != nullptr)
      if (const auto* const ranks = std::get_if<RankRule>(&rule_->function))
        return ranked_harm(*ranks, strength);
    Neighbourhood hood{weights_, SquaredDistances(rows())};
    for (std::size_t i = 0; i < rows(); ++i)
      for (std::size_t j = i + 1; j < rows(); ++j)
        hood.distances.set(i, j, distance(i, j, strength));
    std::vector<double> mixed = rule_ == nullptr || rule_->is_mean()
                                    ? weights_
                                    : std::get<DistanceRule>(rule_->function).weights(hood);
    mixed[0] = 1;
    for (std::size_t j = 1; j < rows(); ++j) mixed[0] -= mixed[j];
    return SquaredDistances(hood.distances, {mixed, honest_weights_})(0, 1);
  }

 private:
  std::size_t rows() const { return weights_.size(); }

  void add(const AttackView& view, int peer, double weight, bool hostile) {
    const std::vector<float>& row = view.rows[static_cast<std::size_t>(peer)];
    rows_.emplace_back(row.begin(), row.end());
    hostile_.push_back(hostile);
    weights_.push_back(weight);
    honest_weights_.push_back(hostile ? 0 : weight);
  }

  /// Distances are squares of norms that are of second degree in the strength.
  void measure() {
    for (std::size_t i = 0; i < rows(); ++i) {
      fixed_.emplace_back(rows());
      for (std::size_t j = 0; j < i; ++j)
        if (!hostile_[i] && !hostile_[j]) fixed_[i][j] = squared_distance(rows_[i], rows_[j]);
    }
    for (std::size_t i = 0; i < rows(); ++i) {
      double along = 0;
      for (std::size_t k = 0; k < at_0_.size(); ++k)
        along += (at_0_[k] - rows_[i][k]) * direction_[k];
      to_message_.push_back({squared_distance(at_0_, rows_[i]), 2 * along});
    }
    for (const double value : direction_) direction_squared_ += value * value;
  }
  double distance(std::size_t i, std::size_t j, double strength) const {
    if (hostile_[i] && hostile_[j]) return 0;
    if (!hostile_[i] && !hostile_[j]) return fixed_[std::max(i, j)][std::min(i, j)];
    const auto& [constant, linear] = to_message_[hostile_[i] ? j : i];
    return std::max(0.0, constant + strength * (linear + strength * direction_squared_));
  }

  std::vector<double> combined(std::span<const double> weights) const {
    std::vector<double> sum(at_0_.size());
    for (std::size_t j = 0; j < rows(); ++j)
      for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += weights[j] * rows_[j][k];
    return sum;
  }
  double ranked_harm(const RankRule& rule, double strength) const {
    std::vector<double> message = at_0_, mixed(at_0_.size());
    for (std::size_t k = 0; k < message.size(); ++k) message[k] += strength * direction_[k];
    std::vector<const double*> ranked;
    for (std::size_t j = rule.ranks_own_row ? 0 : 1; j < rows(); ++j)
      ranked.push_back(hostile_[j] ? message.data() : rows_[j].data());
    const Ranks ranks = rule.ranks(rows() - 1);
    const gpu::OrderStatisticsRequest<double> request{rows_[0].data(), mixed.data(), ranked,
                                                      ranks.first,     ranks.count,  ranks.factor,
                                                      mixed.size()};
    gpu::BasicCpuDevice<double>(1).execute(std::span(&request, 1));
    return squared_distance(mixed, target_);
  }

  struct ToMessage {
    double constant = 0, linear = 0;
  };

  const MixingRule* rule_;
  std::vector<double> at_0_, direction_;   ///< [d]: the message is at_0 + strength · direction
  std::vector<std::vector<double>> rows_;  ///< [m][d]: that of the receiver, and its neighbours'
  std::vector<bool> hostile_;              ///< [m]
  std::vector<double> weights_, honest_weights_;  ///< [m]: of the mix, and of the sum in its place
  std::vector<std::vector<double>> fixed_;        ///< squared distances of honest rows i > j
  std::vector<ToMessage> to_message_;  ///< [m]: the squared distance of a row to the message
  double direction_squared_ = 0;
  std::vector<double> target_;  ///< [d]: Σ honest_weights_ rows_; of a RankRule
};

}  // namespace

double most_harmful_strength(const Attack& attack, const AttackView& view, int receiver,
                             const MixingRule* rule) {
  GOSSAMER_CHECK(rule == nullptr || !rule->reads_losses(), "a search has no losses");
  const AttackedMix mix(attack, view, receiver, rule);
  double best = 0, most = mix.harm(0), step = 1;
  if (rule == nullptr || rule->is_mean())
    return mix.harm(kLargestSearched) > most ? kLargestSearched : 0;
  constexpr double kRounding = 1e-6;
  std::set<double> tried{0};
  const auto may_try = [&] { return tried.size() < std::size_t{kSearchedStrengths}; };
  /// Whether the strength does more harm than any before it; not by rounding alone, where a rule
  /// clips the message.
  const auto try_strength = [&](double strength) {
    if (strength < 0 || !tried.insert(strength).second) return false;
    const double harm = mix.harm(strength);
    if (!(harm > most * (1 + kRounding))) return false;
    best = strength;
    most = harm;
    return true;
  };
  while (may_try() && try_strength(best + step)) step *= 2;
  while (may_try()) {
    step /= 2;
    if (!try_strength(best + step) && may_try()) try_strength(best - step);
  }
  return best;
}

}  // namespace gossamer::gossip
