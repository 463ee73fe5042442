// MATCHA: a graph as matchings, of which each round uses a random few. A budget says how many, and
// matchings that hold the graph together are used more often.
//
// Wang, Sahu, Yang, Joshi, Kar 2019 (arXiv:1905.09435), in three steps. (1) The graph's edges are
// coloured (topology/graph.hpp); a colour is a matching, with the Laplacian L_j. (2) Matching j is
// active in a round with probability p_j, independently; the p maximise λ2(Σ p_j L_j) subject to Σ
// p_j ≤ C_b M and 0 ≤ p ≤ 1. (3) W = I − α Σ_j B_j L_j, where B_j is 1 if matching j is active, and
// α minimises ρ(α) = ‖E WᵀW − 11ᵀ/n‖.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/linear_algebra/dense.hpp"
#include "base/philox.hpp"
#include "topology/building.hpp"
#include "topology/weights.hpp"

namespace gossamer::topology::kinds::matcha {
namespace {

constexpr int kMostPeers = 256;
constexpr std::int64_t kMostEdges = 4096;
/// Probabilities and α are rounded down to multiples of this, so that machines whose arithmetic
/// differs in the last bits draw the same rounds with the same weights.
constexpr double kStep = 0x1p-20;

struct MatchaOptions {
  std::string base = "ring", path;
  double budget = 0.5;
};

const ParameterSet<MatchaOptions>& parameters() {
  static const auto set =
      ParameterSet<MatchaOptions>()
          .add("base", &MatchaOptions::base,
               {.help = "the kind of the graph that is decomposed, with its default parameters: "
                        "static, undirected and connected"})
          .add("path", &MatchaOptions::path,
               {.help = "with base = file: the graph's file", .path = true})
          .add("budget", &MatchaOptions::budget,
               {.help = "C_b: the expected number of active matchings, as a part of all",
                .minimum = 0.05,
                .maximum = 1});
  return set;
}

using Matching = std::vector<Edge>;

Eigen::MatrixXd laplacian(int n, const std::vector<Matching>& matchings,
                          const Eigen::VectorXd& weights) {
  Eigen::MatrixXd sum = Eigen::MatrixXd::Zero(n, n);
  for (std::size_t j = 0; j < matchings.size(); ++j)
    for (const auto& [a, b] : matchings[j]) {
      const double weight = weights(static_cast<Eigen::Index>(j));
      sum(a, a) += weight;
      sum(b, b) += weight;
      sum(a, b) -= weight;
      sum(b, a) -= weight;
    }
  return sum;
}

/// Step 2 by a barrier method (Boyd and Vandenberghe 2004, section 11.3): minimises, for growing τ,
///   −τ t − log det S − Σ log p_j − Σ log(1 − p_j) − log(C_b M − Σ p_j),
/// S = Σ p_j L_j − t (I − J) + J and J = 11ᵀ/n, so that t < λ2 where S is positive definite. With
/// θ = n + 2M + 1 logarithms, t is then at most θ/τ below the optimum.
class Activation {
 public:
  Activation(int n, const std::vector<Matching>& matchings, double budget)
      : n_(n),
        matchings_(matchings),
        count_(static_cast<Eigen::Index>(matchings.size())),
        budget_(budget * static_cast<double>(matchings.size())) {
    x_ = Eigen::VectorXd::Constant(count_ + 1, 0.9 * budget);
    const double connectivity =
        symmetric_eigenvalues(laplacian(n_, matchings_, x_.head(count_)))(n_ < 2 ? 0 : 1);
    x_(count_) = connectivity / 2;
    // τ t > 1e6 θ: to a millionth of λ2.
    const double theta = n_ + 2.0 * static_cast<double>(count_) + 1;
    for (double tau = theta / connectivity; tau < 1e7 * theta / connectivity; tau *= 8) centre(tau);
  }

  Eigen::VectorXd probabilities() const { return x_.head(count_); }

 private:
  struct Point {
    double value = 0;
    Eigen::MatrixXd inverse;  ///< of S
  };

  /// None outside of the constraints.
  std::optional<Point> look(const Eigen::VectorXd& x, double tau) const {
    const Eigen::ArrayXd p = x.head(count_).array();
    const double left = budget_ - p.sum(), t = x(count_);
    if (!(p.minCoeff() > 0 && p.maxCoeff() < 1 && left > 0)) return std::nullopt;
    Eigen::MatrixXd s = laplacian(n_, matchings_, p.matrix());
    s.diagonal().array() -= t;
    s.array() += (1 + t) / n_;
    auto factors = invert_positive(s);
    if (!factors) return std::nullopt;
    return Point{
        -tau * t - factors->log_determinant - p.log().sum() - (1 - p).log().sum() - std::log(left),
        std::move(factors->inverse)};
  }

  void centre(double tau) {
    constexpr int kMostSteps = 60;
    constexpr double kSettled = 1e-7;
    std::optional<Point> here = look(x_, tau);
    for (int step = 0; here && step < kMostSteps; ++step) {
      Eigen::VectorXd gradient(count_ + 1);
      Eigen::MatrixXd hessian(count_ + 1, count_ + 1);
      differentiate(here->inverse, tau, gradient, hessian);
      const Eigen::VectorXd direction = -solve_semidefinite(hessian, gradient);
      const double slope = gradient.dot(direction);
      if (-slope / 2 <= kSettled) return;
      std::optional<Point> next;
      double length = 1;
      for (; length > 1e-9; length /= 2) {
        next = look(x_ + length * direction, tau);
        if (next && next->value <= here->value + 0.25 * length * slope) break;
      }
      if (length <= 1e-9) return;  // no better point can be told from this one
      x_ += length * direction;
      here = std::move(next);
    }
  }

  /// With G = S⁻¹ and the vector b_e of an edge e, L_j = Σ_{e in j} b_e b_eᵀ: tr(G L_j) =
  /// Σ_e b_eᵀ G b_e and tr(G L_i G L_j) = Σ_{e in i, f in j} (b_eᵀ G b_f)²; L_j J = 0 and G J = J.
  /// Of the Hessian, the lower triangle.
  void differentiate(const Eigen::MatrixXd& g, double tau, Eigen::VectorXd& gradient,
                     Eigen::MatrixXd& hessian) const {
    const double left = budget_ - x_.head(count_).sum();
    hessian.setConstant(1 / (left * left));
    for (Eigen::Index j = 0; j < count_; ++j) {
      const double p = x_(j);
      double trace = 0, mixed = 0;
      for (const auto& [c, d] : matchings_[static_cast<std::size_t>(j)]) {
        const Eigen::VectorXd column = g.col(c) - g.col(d);
        trace += column(c) - column(d);
        mixed += column.squaredNorm();
        for (Eigen::Index i = 0; i <= j; ++i)
          for (const auto& [a, b] : matchings_[static_cast<std::size_t>(i)]) {
            const double entry = column(a) - column(b);
            hessian(j, i) += entry * entry;
          }
      }
      gradient(j) = 1 / left - 1 / p + 1 / (1 - p) - trace;
      hessian(j, j) += 1 / (p * p) + 1 / ((1 - p) * (1 - p));
      hessian(count_, j) = -mixed;
    }
    gradient(count_) = -tau + g.trace() - 1;
    hessian(count_, count_) = g.squaredNorm() - 1;
  }

  int n_;
  const std::vector<Matching>& matchings_;
  Eigen::Index count_;
  double budget_;
  Eigen::VectorXd x_;  ///< p, then t
};

/// Step 3. E WᵀW = I − 2α L̄ + α² (L̄² + 2 L̃) with the mean L̄ = Σ p_j L_j and L̃ =
/// Σ p_j (1 − p_j) L_j, as L_j² = 2 L_j.
class Contraction {
 public:
  Contraction(int n, const std::vector<Matching>& matchings, const Eigen::VectorXd& p)
      : n_(n), mean_(laplacian(n, matchings, p)) {
    const Eigen::VectorXd variances = (p.array() * (1 - p.array())).matrix();
    square_ = product(mean_, mean_) + 2 * laplacian(n, matchings, variances);
  }

  /// ρ(α): the largest eigenvalue on vectors of mean 0.
  double at(double alpha) const {
    Eigen::MatrixXd expected = alpha * alpha * square_ - 2 * alpha * mean_;
    expected.diagonal().array() += 1;
    expected.array() -= 1.0 / n_;
    return std::max(0.0, symmetric_eigenvalues(expected)(n_ - 1));
  }

  /// The α up to `most` with the smallest ρ, by golden section: ρ is convex, and the minimum lies
  /// below 1/λ2(L̄), as the squares in α of all vectors have theirs there.
  double best(double most) const {
    constexpr double kGolden = 0.6180339887498949;
    double low = 0, high = std::min(most, 1 / symmetric_eigenvalues(mean_)(1));
    double a = high - kGolden * (high - low), b = low + kGolden * (high - low);
    double at_a = at(a), at_b = at(b);
    while (high - low > 1e-8) {
      if (at_a <= at_b) {
        high = std::exchange(b, std::exchange(a, b - kGolden * (b - low)));
        at_b = std::exchange(at_a, at(a));
      } else {
        low = std::exchange(a, std::exchange(b, a + kGolden * (high - a)));
        at_a = std::exchange(at_b, at(b));
      }
    }
    return high;
  }

 private:
  int n_;
  Eigen::MatrixXd mean_, square_;
};

Eigen::VectorXd rounded_down(const Eigen::VectorXd& x) {
  return ((x.array() / kStep).floor() * kStep).matrix();
}

class Matcha final : public Topology {
 public:
  Matcha(const Graph& graph, const TopologyContext& context, double budget)
      : peers_(context.peers),
        seed_(context.seed),
        matchings_(matchings_of(graph)),
        active_(budget < 1 ? rounded_down(Activation(peers_, matchings_, budget).probabilities())
                           : Eigen::VectorXd::Ones(static_cast<Eigen::Index>(matchings_.size()))) {
    std::size_t largest = 0;
    for (const auto& out : graph.out) largest = std::max(largest, out.size());
    const Contraction contraction(peers_, matchings_, active_);
    // A peer keeps 1 − α times the number of its edges that are active, which may be all.
    const double most = context.allow_negative ? 1e9 : 1 / static_cast<double>(largest);
    alpha_ = std::floor(contraction.best(most) / kStep) * kStep;
    factor_ = contraction.at(alpha_);
    lazy_factor_ = contraction.at(alpha_ / 2);
  }

  int peers() const override { return peers_; }
  int period() const override { return 0; }
  RandomLaw law() const override {
    return {.alike = false,
            .mean_square_factor = [plain = factor_, other = lazy_factor_](bool lazy) {
              return lazy ? other : plain;
            }};
  }
  Graph graph(Round t) const override {
    std::vector<Edge> edges;
    for (const Matching* matching : drawn(t))
      edges.insert(edges.end(), matching->begin(), matching->end());
    return undirected_graph(peers_, edges);
  }
  std::optional<WeightRows> weights(Round t) const override {
    const Graph graph = this->graph(t);
    WeightRows rows;
    for (int i = 0; i < peers_; ++i) {
      std::vector<Neighbour> others;
      for (const int j : graph.out[static_cast<std::size_t>(i)]) others.push_back({j, alpha_});
      rows.push_back(complete_row(i, std::move(others)));
    }
    return rows;
  }

 private:
  std::vector<const Matching*> drawn(Round t) const {
    constexpr Round kFirst = 1U << 20;  // past the draws of a random base graph
    RandomStream random(seed_, kNoPeer, Purpose::topology, kFirst + t);
    std::vector<const Matching*> matchings;
    for (std::size_t j = 0; j < matchings_.size(); ++j)
      if (random.next_double() < active_(static_cast<Eigen::Index>(j)))
        matchings.push_back(&matchings_[j]);
    return matchings;
  }

  int peers_;
  std::uint64_t seed_;
  std::vector<Matching> matchings_;
  Eigen::VectorXd active_;  ///< p
  double alpha_ = 0, factor_ = 0, lazy_factor_ = 0;
};

/// The graph that is decomposed, or why there is none.
Result<Graph> base_graph(const TopologyContext& context, const MatchaOptions& options) {
  GOSSAMER_TRY(const TopologyKind kind, find_kind(options.base));
  ParameterValues values;
  if (!options.path.empty()) values["path"] = options.path;
  GOSSAMER_TRY(const ParameterValues checked, check_values("topology", kind.parameters, values));
  GOSSAMER_TRY(const std::unique_ptr<Topology> base, kind.make(context, checked));
  if (base->period() != 1)
    return invalid_error(fmt::format(
        "topology.base: '{}' changes from round to round, and matcha decomposes one graph; choose "
        "a static kind (ring, torus, erdos_renyi)",
        options.base));
  Graph graph = base->graph(0);
  if (!is_symmetric(graph))
    return invalid_error(
        fmt::format("topology.base: '{}' is directed, and matcha decomposes an undirected graph; "
                    "choose another kind (ring, torus, erdos_renyi)",
                    options.base));
  if (const auto pair = find_unreachable(graph))
    return invalid_error(
        fmt::format("topology.base: no path leads from peer {} to peer {}", pair->from, pair->to));
  if (count_edges(graph) / 2 > kMostEdges)
    return invalid_error(fmt::format(
        "topology matcha optimises the use of up to {} edges, and '{}' of {} peers has {}; choose "
        "fewer peers or a sparser graph",
        kMostEdges, options.base, context.peers, count_edges(graph) / 2));
  return graph;
}

}  // namespace

TopologyKind descriptor() {
  TopologyKind kind;
  kind.name = "matcha";
  kind.summary =
      "a graph in matchings, of which each round uses a random few: a budget of communication, "
      "spent where it connects the graph best";
  kind.source = "Wang et al. 2019 (arXiv:1905.09435)";
  kind.parameters = parameters().specs();
  kind.make = [](const TopologyContext& context,
                 const ParameterValues& values) -> Result<std::unique_ptr<Topology>> {
    GOSSAMER_TRY(const MatchaOptions options, parameters().read("topology", values));
    if (context.peers > kMostPeers)
      return cannot_build("matcha", context.peers,
                          fmt::format("its probabilities are optimised for up to {}", kMostPeers),
                          [](int n) { return n <= kMostPeers; });
    GOSSAMER_TRY(const Graph graph, base_graph(context, options));
    if (context.peers == 1) return static_topology(graph);
    return std::unique_ptr<Topology>(std::make_unique<Matcha>(graph, context, options.budget));
  };
  return kind;
}

}  // namespace gossamer::topology::kinds::matcha
