#include "theory/quadratic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/linear_algebra/dense.hpp"
#include "topology/spectrum.hpp"

namespace gossamer::theory {
namespace {

/// Below the resolution of float32 parameters: a run with such a limit ends at the optimum.
constexpr double kNothing = 1e-9;

/// The run in coordinates in which one Hessian, where there is only one, is diagonal: distances are
/// the same.
struct Prepared {
  Curvature curvature;
  RowMatrix error, gradients, decay;  ///< n × d: x_i(0) − x*, h_i, weight_decay · x*
  double scale = 1;                   ///< n ‖x*‖²
};

Prepared prepare(const QuadraticRun& run) {
  const Quadratics& f = run.functions;
  const Eigen::Index n = run.start.rows();
  Prepared prepared;
  prepared.error = run.start.rowwise() - f.optimum;
  prepared.gradients = f.gradients;
  prepared.decay = (run.recipe.weight_decay * f.optimum).replicate(n, 1);
  prepared.scale = static_cast<double>(n) * f.optimum.squaredNorm();
  if (f.hessians.size() > 1) {
    prepared.curvature.hessians = f.hessians;
    return prepared;
  }
  const SymmetricEigen hessian = symmetric_eigen(f.hessians.front());
  prepared.curvature.values = hessian.values.array();
  for (RowMatrix* rows : {&prepared.error, &prepared.gradients, &prepared.decay})
    *rows *= hessian.vectors;
  return prepared;
}

Distances distances(const Squares& squares, const Prepared& prepared, Eigen::Index peers) {
  constexpr double kRounding = 1e-28;  // of a mean of equal rows
  const double beside = squares.beside_mean <= kRounding * squares.whole ? 0 : squares.beside_mean;
  return {std::sqrt(beside / static_cast<double>(peers)),
          std::sqrt(squares.whole / prepared.scale)};
}

Squares operator+(const Squares& a, const Squares& b) {
  return {a.whole + b.whole, a.beside_mean + b.beside_mean};
}
Squares operator*(double factor, const Squares& a) {
  return {factor * a.whole, factor * a.beside_mean};
}

using PeerIteration = Iteration<PeerSpace>;

/// Multiplications of a round of `probes` probes.
double work_of_round(const QuadraticRun& run, const PeerSpace& space, double probes) {
  double entries = 0;
  const auto w = run.schedule.at(0);
  for (int i = 0; i < w->peers(); ++i)
    entries += 2.0 + static_cast<double>(w->in_neighbours(i).size());
  const double d = static_cast<double>(space.dimension()), n = static_cast<double>(space.peers());
  const double gradient = (run.functions.hessians.size() > 1 ? d : 1) * run.recipe.local_steps;
  return probes * d * (n * (gradient + 4 * run.recipe.rows()) + 2 * entries);
}

std::string too_large(const std::string& what, double work) {
  return fmt::format("{}: it would take about {:.0e} multiplications", what, work);
}

/// One period of the iteration on a part of the space, as s ← M s + b; s is the part's state,
/// vector by vector, peer by peer.
class PeriodMap {
 public:
  /// `weights`: push-sum's, at the start of a period in the long run.
  PeriodMap(const QuadraticRun& run, const Recipe& recipe, const PeerSpace& part,
            const PeerSpace::Weights& weights)
      : rounds_(static_cast<Round>(run.schedule.period())),
        part_(part),
        iteration_(part_, recipe),
        rows_(recipe.rows()),
        weights_(weights) {}

  Eigen::Index size() const { return rows_ * part_.peers() * part_.dimension(); }

  Eigen::MatrixXd matrix() const {
    const Eigen::Index n = part_.peers(), d = part_.dimension(), size = this->size();
    auto state = from(part_.zero(size));
    for (Eigen::Index p = 0; p < size; ++p)
      (*vectors(state)[p / (n * d)])(p / d % n, p * d + p % d) = 1;
    for (Round t = 0; t < rounds_; ++t) iteration_.round(state, t, {});
    Eigen::MatrixXd matrix(size, size);
    for (Eigen::Index p = 0; p < size; ++p)
      for (Eigen::Index q = 0; q < size; ++q)
        matrix(q, p) = (*vectors(state)[q / (n * d)])(q / d % n, p * d + q % d);
    return matrix;
  }

  /// The state that a period leaves as it is, taken `phase` rounds further.
  Squares fixed_point(const RowMatrix& gradient, const RowMatrix& decay, Round phase) const {
    const Eigen::Index n = part_.peers(), d = part_.dimension(), size = this->size();
    const PeerIteration::Input input{&gradient, &decay, -1};
    auto state = from(part_.zero());
    for (Round t = 0; t < rounds_; ++t) iteration_.round(state, t, input);
    Eigen::VectorXd b(size);
    for (Eigen::Index q = 0; q < size; ++q) b(q) = (*vectors(state)[q / (n * d)])(q / d % n, q % d);
    const Eigen::VectorXd fixed = solve(Eigen::MatrixXd::Identity(size, size) - matrix(), b);
    for (Eigen::Index q = 0; q < size; ++q)
      (*vectors(state)[q / (n * d)])(q / d % n, q % d) = fixed(q);
    for (Round t = 0; t < phase; ++t) iteration_.round(state, t, input);
    return part_.squares(iteration_.models(state));
  }

 private:
  PeerIteration::State from(RowMatrix x) const {
    auto state = iteration_.from(std::move(x));
    state.weights = weights_;
    return state;
  }

  static std::vector<RowMatrix*> vectors(PeerIteration::State& state) {
    std::vector<RowMatrix*> found{&state.x};
    if (state.memory.size() > 0) found.push_back(&state.memory);
    if (state.momentum.size() > 0) found.push_back(&state.momentum);
    return found;
  }

  Round rounds_;
  const PeerSpace& part_;
  PeerIteration iteration_;
  int rows_;
  const PeerSpace::Weights& weights_;
};

/// Push-sum's weights at the start of a period in the long run: what its product P leaves as it is,
/// n in sum. P's columns sum to 1, so v = (I − P + 11ᵀ/n)⁻¹ 1 is that: multiplied from the left
/// with 1ᵀ it says 1ᵀv = n, and then (I − P) v = 0.
PeerSpace::Weights settled_weights(const MixingSchedule& schedule, const PeerSpace& space) {
  const Eigen::Index n = space.peers();
  RowMatrix product = RowMatrix::Identity(n, n);
  for (int t = 0; t < schedule.period(); ++t) product = space.mixed(product, static_cast<Round>(t));
  const Eigen::MatrixXd system = Eigen::MatrixXd::Identity(n, n) - product +
                                 Eigen::MatrixXd::Constant(n, n, 1.0 / static_cast<double>(n));
  return solve(system, Eigen::VectorXd::Ones(n)).array();
}

/// Whether push-sum's weights leave 1.
bool leans(const QuadraticRun& run) {
  if (run.recipe.method != Method::push_sum) return false;
  for (int t = 0; t < run.schedule.period(); ++t)
    if (!run.schedule.at(static_cast<Round>(t))->doubly_stochastic()) return true;
  return false;
}

/// The spectral radius of a period where modes go their own ways: of each mode's matrix of rows() ×
/// rows().
double radius_by_mode(const ModeSpace& space, const Recipe& recipe, int period) {
  const Iteration<ModeSpace> iteration(space, recipe);
  const int rows = recipe.rows();
  auto state = iteration.from(space.zero(rows));
  std::vector<ModeSpace::Vector*> vectors{&state.x};
  if (state.memory.size() > 0) vectors.push_back(&state.memory);
  if (state.momentum.size() > 0) vectors.push_back(&state.momentum);
  for (int r = 0; r < rows; ++r) vectors[static_cast<std::size_t>(r)]->col(r).setOnes();
  for (int t = 0; t < period; ++t) iteration.round(state, static_cast<Round>(t), {});
  double radius = 0;
  Eigen::MatrixXcd matrix(rows, rows);
  for (Eigen::Index mode = 0; mode < space.size(); ++mode) {
    for (int r = 0; r < rows; ++r) matrix.row(r) = vectors[static_cast<std::size_t>(r)]->row(mode);
    radius = std::max(radius, eigenvalues(real_form(matrix)).cwiseAbs().maxCoeff());
  }
  return radius;
}

/// What independent noise of deviation 1 has done to the squares, by its impulse response: of every
/// round, and in the end.
struct NoiseResponse {
  std::vector<Squares> curve;  ///< by round asked for
  std::optional<Squares> limit;
};

template <class Space>
NoiseResponse noise_response(const Space& space, const QuadraticRun& run,
                             std::optional<double> rate, Round most) {
  const Iteration<Space> iteration(space, run.recipe);
  const auto units = space.units();
  NoiseResponse response;
  response.curve.assign(run.rounds.size(), Squares{});
  const bool settles = rate && *rate < 1;
  if (settles) response.limit = Squares{};
  for (int h = 0; h < run.recipe.local_steps; ++h) {
    auto state = iteration.from(0 * units);
    Squares sum;
    std::size_t next = 0;
    for (Round t = 0;; ++t) {  // after t rounds
      for (; next < run.rounds.size() && run.rounds[next] == t; ++next)
        response.curve[next] = response.curve[next] + sum;
      typename Iteration<Space>::Input input;
      if (t == 0) input = {&units, nullptr, h};
      iteration.round(state, t, input);
      const Squares left = space.squares(iteration.models(state));
      sum = sum + left;
      // What is still to come is at most about left / (1 − rate²), once the slowest part is what is
      // left.
      const bool over = settles && left.whole <= 1e-8 * (1 - *rate * *rate) * sum.whole;
      if (next == run.rounds.size() && (over || !settles)) break;
      if (t == most) return {};
    }
    if (settles) response.limit = *response.limit + sum;
  }
  return response;
}

class Predictor {
 public:
  explicit Predictor(const QuadraticRun& run)
      : run_(run),
        prepared_(prepare(run)),
        space_(run.schedule, prepared_.curvature),
        modes_(ModeSpace::make(run.schedule, prepared_.curvature)),
        long_run_(run.recipe),
        leans_(leans(run)),
        weights_(space_.equal_weights()) {
    if (run.recipe.settled_rate)
      long_run_.rate = [rate = *run.recipe.settled_rate](std::uint64_t) { return rate; };
  }

  QuadraticOutcome predict() {
    find_rate();
    find_limit();
    find_curve();
    if (run_.gradient_noise > 0) add_noise();
    return std::move(outcome_);
  }

 private:
  void leave_out(std::string what) { outcome_.not_known.push_back(std::move(what)); }

  void find_rate() {
    if (run_.schedule.period() == 0)
      return leave_out("rate and limit: W is drawn anew each round, and has no period");
    if (!run_.recipe.settled_rate)
      return leave_out("rate and limit: the step size does not settle");
    const int period = run_.schedule.period();
    double radius = 0;
    if (modes_) {
      radius = radius_by_mode(*modes_, long_run_, period);
    } else {
      const std::vector<PeerSpace> parts = space_.parts();
      const double size =
          static_cast<double>(PeriodMap(run_, long_run_, parts.front(), weights_).size());
      if (const double work = 12 * std::pow(size, 3) * static_cast<double>(parts.size());
          work > kMostWork)
        return leave_out(too_large("rate and limit", work));
      if (leans_) weights_ = settled_weights(run_.schedule, space_);
      for (const PeerSpace& part : parts)
        radius = std::max(
            radius, topology::spectral_radius(PeriodMap(run_, long_run_, part, weights_).matrix()));
      // The weights settle as fast as W mixes, and the models no faster than they.
      if (leans_)
        radius = std::max(radius, std::pow(1 - topology::spectral_gap(run_.schedule), period));
    }
    outcome_.rate = std::pow(radius, 1.0 / period);
  }

  void find_limit() {
    if (!outcome_.rate || *outcome_.rate >= 1) return;
    const std::vector<PeerSpace> parts = space_.parts();
    const double size =
        static_cast<double>(PeriodMap(run_, long_run_, parts.front(), weights_).size());
    if (const double work = std::pow(size, 3) / 3 * static_cast<double>(parts.size());
        work > kMostWork)
      return leave_out(too_large("limit", work));
    const Round phase =
        run_.rounds.empty() ? 0 : run_.rounds.back() % static_cast<Round>(run_.schedule.period());
    Squares sum;
    for (std::size_t p = 0; p < parts.size(); ++p) {
      const Eigen::Index first = static_cast<Eigen::Index>(p), width = parts[p].dimension();
      sum = sum + PeriodMap(run_, long_run_, parts[p], weights_)
                      .fixed_point(prepared_.gradients.middleCols(first, width),
                                   prepared_.decay.middleCols(first, width), phase);
    }
    Distances bias = distances(sum, prepared_, run_.start.rows());
    if (bias.optimum < kNothing) bias.optimum = 0;
    if (bias.consensus < kNothing * std::sqrt(prepared_.scale)) bias.consensus = 0;
    outcome_.bias = outcome_.limit = bias;
  }

  void find_curve() {
    if (run_.rounds.empty()) return;
    const double work = static_cast<double>(run_.rounds.back()) * work_of_round(run_, space_, 1);
    if (work > kMostWork) return leave_out(too_large("curve", work));
    const PeerIteration iteration(space_, run_.recipe);
    const PeerIteration::Input input{&prepared_.gradients, &prepared_.decay, -1};
    auto state = iteration.from(prepared_.error);
    Round t = 0;
    for (const Round round : run_.rounds) {
      for (; t < round; ++t) iteration.round(state, t, input);
      outcome_.curve.push_back(
          distances(space_.squares(iteration.models(state)), prepared_, run_.start.rows()));
    }
  }

  void add_noise() {
    const auto forget = [this](const char* why) {
      outcome_.limit.reset();
      outcome_.curve.clear();
      leave_out(fmt::format("curve and limit: {}", why));
    };
    if (run_.schedule.period() != 1 || run_.recipe.settled_rate != run_.recipe.rate(0) || leans_)
      return forget(
          "the effect of gradient noise is known only if W, the step size and the weights of "
          "push-sum are constant");
    NoiseResponse response;
    if (modes_) {
      const double work =
          10.0 * static_cast<double>(modes_->size()) * run_.recipe.rows() * run_.recipe.local_steps;
      response = noise_response(*modes_, run_, outcome_.rate, static_cast<Round>(kMostWork / work));
    } else {
      const auto probes =
          static_cast<double>(space_.units().cols() / space_.dimension()) * run_.recipe.local_steps;
      response =
          noise_response(space_, run_, outcome_.rate,
                         static_cast<Round>(kMostWork / work_of_round(run_, space_, probes)));
    }
    if (response.curve.size() != run_.rounds.size())
      return forget("the effect of gradient noise takes too long to converge");
    const auto with_noise = [this](const Distances& mean, const Squares& noise) {
      const Distances more = distances(run_.gradient_noise * run_.gradient_noise * noise, prepared_,
                                       run_.start.rows());
      return Distances{std::hypot(mean.consensus, more.consensus),
                       std::hypot(mean.optimum, more.optimum)};
    };
    for (std::size_t i = 0; i < outcome_.curve.size(); ++i)
      outcome_.curve[i] = with_noise(outcome_.curve[i], response.curve[i]);
    if (outcome_.limit && response.limit)
      outcome_.limit = with_noise(*outcome_.limit, *response.limit);
  }

  const QuadraticRun& run_;
  Prepared prepared_;
  PeerSpace space_;
  std::optional<ModeSpace> modes_;
  Recipe long_run_;  ///< at the settled rate
  bool leans_;
  PeerSpace::Weights weights_;  ///< push-sum's, in the long run
  QuadraticOutcome outcome_;
};

}  // namespace

QuadraticOutcome predict(const QuadraticRun& run) { return Predictor(run).predict(); }

}  // namespace gossamer::theory
