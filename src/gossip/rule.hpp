// The interface of a mixing rule, which combines a peer's row with the rows of its neighbours. Each
// file of gossip/rules/ is one kind. The default, `mean`, is the weighted mean by W. The other
// rules are robust: they bound the influence of b hostile neighbours, which may send any finite
// values.
//
// A rule is one of two kinds of function. A DistanceRule gives each row a weight, which depends on
// W and on the distances between the rows, and may depend on losses of rows on the peer's own
// samples; the mix is then x_i + Σ_j a_j (x_j − x_i), as with W.
// A RankRule works on each coordinate by itself, and takes the mean of values of certain ranks.
// Equal rows are a fixed point of every rule, exactly.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/parameter.hpp"
#include "base/result.hpp"

namespace gossamer::gossip {

/// The squared Euclidean distances of m rows. Symmetric, finite, ≥ 0, and 0 on the diagonal.
class SquaredDistances {
 public:
  /// All distances are 0.
  explicit SquaredDistances(std::size_t rows) : rows_(rows), values_(rows * rows) {}
  /// The distances of the combinations Σ_k weights[p][k] row_k, one for each p, where the weights
  /// of each sum to 1. From ‖Σ_k c_k row_k‖² = −½ Σ_kl c_k c_l ‖row_k − row_l‖² where Σ_k c_k = 0.
  SquaredDistances(const SquaredDistances& of_rows,
                   const std::vector<std::vector<double>>& weights);

  std::size_t rows() const { return rows_; }
  double operator()(std::size_t i, std::size_t j) const { return values_[i * rows_ + j]; }
  /// A value that is not finite, as of rows that are not, becomes kFarthest.
  void set(std::size_t i, std::size_t j, double squared_distance);
  /// The distance from the combination Σ_k weights[k] row_k, Σ_k weights[k] = 1, to each row.
  std::vector<double> from(std::span<const double> weights) const;
  /// All rows, the nearest to row i first: row i itself, and then of equal distances the lower
  /// index.
  std::vector<std::size_t> nearest_to(std::size_t i) const;

  static constexpr double kFarthest = 1e300;

 private:
  std::size_t rows_;
  std::vector<double> values_;
};

/// What a DistanceRule sees of a mix of m rows. Row 0 is the peer's own; the others are those of
/// the in-neighbours whose rows are mixed, ascending by peer.
struct Neighbourhood {
  /// [m]: the peer's row of W. What is missing to a sum of 1, as the weights of neighbours that are
  /// lost or late, is part of weights[0].
  std::vector<double> weights;
  SquaredDistances distances;  ///< of the m rows

  std::size_t rows() const { return weights.size(); }
  /// The largest weight that `hostile` neighbours may have together.
  double hostile_weight(int hostile) const;
};

/// The mix Σ_k a_k row_k.
struct DistanceRule {
  bool between_neighbours = true;  ///< false: it reads distances to row 0 only
  /// [m]: a_k ≥ 0. Entry 0 is not read: it is what is missing to a sum of 1. A pure function.
  std::function<std::vector<double>(const Neighbourhood&)> weights;
  /// [m]: a_k once more, from the a_k of `weights` and from the losses of the rows on a batch of
  /// the peer's own samples: [m], of the rows with a_k > 0 and of row 0. A pure function. Null: the
  /// rule reads no losses. It is not called in a run that trains nothing.
  std::function<std::vector<double>(std::span<const double> weights,
                                    std::span<const double> losses)>
      by_losses = nullptr;
};

/// Ranks first … first + count − 1 of the values at one coordinate, counted from 0 in ascending
/// order, and the factor of x + factor · Σ (value − x). Count 0: x does not change.
struct Ranks {
  std::size_t first = 0, count = 0;
  double factor = 0;
};
struct RankRule {
  bool ranks_own_row = false;  ///< the peer's own value is among those that are ranked
  std::function<Ranks(std::size_t neighbours)> ranks;  ///< a pure function
};

/// One rule with its parameters read. Immutable; shared by all peers of a process. Thread: any.
struct MixingRule {
  std::variant<std::monostate, DistanceRule, RankRule> function;  ///< monostate: the mean by W
  int hostile = 0;  ///< b, the number of hostile neighbours that a peer withstands

  bool reads_losses() const {
    const auto* const weighs = std::get_if<DistanceRule>(&function);
    return weighs != nullptr && weighs->by_losses != nullptr;
  }

  bool is_mean() const { return std::holds_alternative<std::monostate>(function); }
};

struct RuleKind {
  std::string name;
  std::string summary;
  std::string source;
  std::vector<ParameterSpec> parameters;
  /// The least number of neighbours with which a peer withstands b hostile ones: the condition of
  /// the source, which limits b alone. Null: the rule withstands none.
  int (*least_neighbours)(int hostile) = nullptr;
  /// What the guarantee of the source needs beyond that, as a clause; empty: nothing is known here.
  std::string guarantee = {};
  /// Whether the mix of rows of which one weighs 1/2 or more in W is that row.
  bool majority_decides = false;
  std::function<Result<MixingRule>(const ParameterValues&)> make;

  /// The largest b that a peer with this number of neighbours withstands.
  int most_hostile(int neighbours) const;
};

namespace rules {
std::vector<RuleKind> catalog();
}  // namespace rules

/// The kind with this name; an unknown name is an error that lists the kinds.
Result<RuleKind> find_rule(const std::string& name);

/// The parameter `hostile`, which all rules but the mean have.
struct HostileOptions {
  int hostile = 1;
};
ParameterNotes hostile_notes();
const ParameterSet<HostileOptions>& hostile_parameters();

/// RuleKind::make of a rule that is built from its options. `parameters` lives as long as the
/// program.
template <class Options>
auto make_rule_with(const ParameterSet<Options>& parameters,
                    MixingRule (*make)(const Options& options)) {
  return [&parameters, make](const ParameterValues& values) -> Result<MixingRule> {
    GOSSAMER_TRY(const Options options, parameters.read("mixing", values));
    MixingRule rule = make(options);
    rule.hostile = options.hostile;
    return rule;
  };
}

/// Σ_j W[i][j] clip(x_j − x_i, radius), clip(z, τ) = z · min(1, τ / ‖z‖), as weights of the rows.
std::vector<double> clipped_weights(const Neighbourhood& hood, double radius);

}  // namespace gossamer::gossip
