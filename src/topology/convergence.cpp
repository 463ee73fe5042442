#include "topology/convergence.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/linear_algebra/dense.hpp"
#include "base/philox.hpp"
#include "topology/krylov.hpp"
#include "topology/lattice.hpp"
#include "topology/spectrum.hpp"

namespace gossamer::topology {
namespace {

/// The mean over a lattice's waves, and over the rounds of a period, of the variance v ←
/// |λ_k(W_t)|² (γ v + 1) once it has settled: a period takes v to a v + b, whose fixed point is
/// b/(1 − a).
std::optional<double> lattice_variance(const MixingSchedule& schedule, double decay) {
  if (schedule.period() == 0) return std::nullopt;
  const auto n = static_cast<std::size_t>(schedule.peers());
  std::vector<std::vector<std::complex<double>>> spectra;
  for (int t = 0; t < schedule.period(); ++t) {
    auto eigenvalues = lattice_eigenvalues(*schedule.at(static_cast<Round>(t)), schedule.lattice());
    if (!eigenvalues) return std::nullopt;
    spectra.push_back(std::move(*eigenvalues));
  }
  double sum = 0;
  for (std::size_t k = 0; k < n; ++k) {
    double a = 1, b = 0;
    for (const auto& spectrum : spectra)
      a *= decay * std::norm(spectrum[k]), b = std::norm(spectrum[k]) * (decay * b + 1);
    double v = b / (1 - a);
    for (const auto& spectrum : spectra) sum += v = std::norm(spectrum[k]) * (decay * v + 1);
  }
  return sum / static_cast<double>(n * spectra.size());
}

double spectrum_variance(const MixingMatrix& w, double decay) {
  const Eigen::ArrayXd squares = symmetric_eigenvalues(dense(w)).array().square();
  return (squares / (1 - decay * squares)).mean();
}

/// tr(V_t)/n with V_t = W_t (γ V_{t−1} + I) W_tᵀ, averaged over a period after it has settled.
double covariance_variance(const MixingSchedule& schedule, double decay) {
  const int n = schedule.peers(), period = schedule.period();
  Eigen::MatrixXd v = Eigen::MatrixXd::Constant(
      n, n, 1 / (1 - decay) / n);  // consensus, where the slowest part ends
  double last = -1;
  for (int settled = 0; settled < 100000; settled += period) {
    double sum = 0;
    for (int t = 0; t < period; ++t) {
      v *= decay;
      v.diagonal().array() += 1;
      const MixingMatrix& w = *schedule.at(static_cast<Round>(t));
      for (int pass = 0; pass < 2; ++pass) {
        for (int column = 0; column < n; ++column) v.col(column) = mixed(w, v.col(column));
        v.transposeInPlace();
      }
      sum += v.trace() / n;
    }
    if (std::abs(sum - last) <= 1e-13 * sum) break;
    last = sum;
  }
  return last / period;
}

/// Every W of the period; of a random sequence, what its weights promise.
bool is_doubly_stochastic(const MixingSchedule& schedule) {
  if (schedule.weighing().stochastic() == Stochastic::doubly) return true;
  for (int t = 0; t < std::max(schedule.period(), 1); ++t)
    if (!schedule.at(static_cast<Round>(t))->doubly_stochastic()) return false;
  return schedule.period() > 0;
}

double edges_of(const MixingMatrix& w) {
  std::size_t edges = 0;
  for (int i = 0; i < w.peers(); ++i) edges += w.in_neighbours(i).size();
  return static_cast<double>(edges);
}

double random_sign(RandomStream& random, std::uint32_t& bits, int i) {
  if (i % 32 == 0) bits = random.next_u32();
  return (bits >> (i % 32)) & 1 ? 1 : -1;
}

/// Of a static symmetric W: Σ_k γ^k tr(W^{2(k+1)})/n, the trace estimated with vectors of ±1
/// (Hutchinson 1990), several at once, for W is large. Modes that are known, the mean among them,
/// are left out, and added as the formula has them. What is cut off the sum is bounded: no term is
/// more than γ times the one before.
double traced_variance(const MixingMatrix& w, double decay) {
  constexpr int kValues = 1 << 16;
  constexpr double kCutOff = 1e-4;
  const int n = w.peers();
  const Modes known = clear_modes(w);
  RowMatrix x(n, std::clamp(kValues / n, 4, 64));
  for (int column = 0; column < x.cols(); ++column) {
    RandomStream random(0, kNoPeer, Purpose::topology, static_cast<std::uint64_t>(column));
    std::uint32_t bits = 0;
    for (int i = 0; i < n; ++i) x(i, column) = random_sign(random, bits, i);
  }
  const auto leave_known_out = [&] {
    x.rowwise() -= x.colwise().mean();
    if (known.values.size() > 0) x -= known.vectors * (known.vectors.transpose() * x);
  };
  leave_known_out();
  double sum = 0;
  for (double weight = 1; weight > kCutOff; weight *= decay) {
    x = mixed_rows(w, x);
    leave_known_out();  // what rounding has brought back
    const double term = weight * x.squaredNorm() / static_cast<double>(x.cols());
    sum += term;
    if (term * decay / (1 - decay) <= kCutOff * sum) break;
  }
  const Eigen::ArrayXd squares = known.values.array().square();
  return (sum + (squares / (1 - decay * squares)).sum() + 1 / (1 - decay)) / n;
}

/// Simulates Definition A with noise of ±1. The mean is left out, because its variance is known.
double simulated_variance(const MixingSchedule& schedule, double decay) {
  const int n = schedule.peers(), period = std::max(schedule.period(), 1);
  const auto whole_periods = [period](double rounds) {
    return static_cast<Round>(period) * static_cast<Round>(std::ceil(rounds / period));
  };
  const Round settling = whole_periods(decay > 0 ? std::log(1e-2) / std::log(decay) : 1);
  const double affordable = 2e8 / (edges_of(*schedule.at(0)) + n);  // rounds
  const double enough = 4e6 / n;
  const Round counted = whole_periods(std::clamp(std::min(enough, affordable), 20.0, 4000.0));
  Eigen::VectorXd z = Eigen::VectorXd::Zero(n);
  double sum = 0;
  for (Round t = 0; t < settling + counted; ++t) {
    RandomStream random(0, kNoPeer, Purpose::topology, t);
    std::uint32_t bits = 0;
    for (int i = 0; i < n; ++i) z(i) = std::sqrt(decay) * z(i) + random_sign(random, bits, i);
    z = mixed(*schedule.at(t), z);
    z.array() -= z.mean();
    if (t >= settling) sum += z.squaredNorm();
  }
  return (sum / static_cast<double>(counted) + 1 / (1 - decay)) / n;
}

/// Definition A in expectation, where all peers are alike in law: beside the mean, a round adds the
/// noise and multiplies all by mean_square_factor().
double random_variance(const MixingSchedule& schedule, double decay) {
  const int n = schedule.peers();
  const double factor = mean_square_factor(schedule);
  return (factor * (n - 1) / (1 - decay * factor) + 1 / (1 - decay)) / n;
}

std::optional<Round> rounds_to_millionth(double gap, const std::optional<Round>& exact) {
  if (gap >= 1) return exact.value_or(1);
  if (!(gap > 0)) return exact;
  const double rounds = std::ceil(std::log(kReduction) / std::log1p(-gap));
  if (rounds > 1e18) return exact;
  return exact ? std::min(*exact, static_cast<Round>(rounds)) : static_cast<Round>(rounds);
}

}  // namespace

double effective_neighbours(const MixingSchedule& schedule, double decay, bool& sampled) {
  sampled = false;
  if (!is_doubly_stochastic(schedule)) return std::numeric_limits<double>::quiet_NaN();
  const double alone = 1 / (1 - decay);
  if (const auto variance = lattice_variance(schedule, decay)) return alone / *variance;
  if (schedule.period() == 0) {
    sampled = !schedule.law().alike;
    return alone /
           (sampled ? simulated_variance(schedule, decay) : random_variance(schedule, decay));
  }
  const bool exact = schedule.peers() <= kDense;
  sampled = !exact;
  if (schedule.period() == 1 && schedule.at(0)->symmetric())
    return alone / (exact ? spectrum_variance(*schedule.at(0), decay)
                          : traced_variance(*schedule.at(0), decay));
  return alone /
         (exact ? covariance_variance(schedule, decay) : simulated_variance(schedule, decay));
}

double messages_in(const MixingSchedule& schedule, Round rounds) {
  constexpr Round kLooked = 100;
  const Round period = schedule.period() > 0 ? static_cast<Round>(schedule.period()) : kLooked;
  std::vector<double> sent;
  for (Round t = 0; t < std::min(period, rounds); ++t) sent.push_back(edges_of(*schedule.at(t)));
  double all = 0, rest = 0;
  for (Round t = 0; t < sent.size(); ++t) {
    all += sent[t];
    if (t < rounds % period) rest += sent[t];
  }
  return static_cast<double>(rounds / period) * all + rest;
}

Convergence predict_convergence(const MixingSchedule& schedule, double gap,
                                std::uint64_t parameters, double decay) {
  Convergence convergence;
  for (int t = 0; t < schedule.period(); ++t)
    convergence.round_gaps.push_back(
        schedule.period() == 1 && schedule.at(0)->symmetric()
            ? gap
            : round_gap(*schedule.at(static_cast<Round>(t)), schedule.lattice()));
  convergence.rounds_to_exact = rounds_to_exact(schedule);
  convergence.decay = decay;
  convergence.effective_neighbours =
      effective_neighbours(schedule, decay, convergence.effective_neighbours_sampled);
  convergence.rounds_to_millionth =
      schedule.peers() == 1 ? Round{0} : rounds_to_millionth(gap, convergence.rounds_to_exact);
  convergence.messages_to_millionth =
      messages_in(schedule, convergence.rounds_to_millionth.value_or(0));
  convergence.bytes_to_millionth =
      convergence.messages_to_millionth * sizeof(float) * static_cast<double>(parameters);
  return convergence;
}

}  // namespace gossamer::topology
