#include "theory/decay.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "topology/krylov.hpp"
#include "topology/spectrum.hpp"

namespace gossamer::theory {
namespace {

/// Σ_{k ≥ 1} Π_{s < t} |λ_k(s)|², whatever t: periods by their logarithm, what is left of one round
/// by round.
double contraction(const std::vector<Eigen::ArrayXd>& log_moduli, const Eigen::ArrayXd& log_period,
                   Round t) {
  const Round periods = t / log_moduli.size(), rest = t % log_moduli.size();
  Eigen::ArrayXd logs = Eigen::ArrayXd::Zero(log_period.size());
  if (periods > 0) logs = static_cast<double>(periods) * log_period;
  for (Round s = 0; s < rest; ++s) logs += log_moduli[s];
  // Eigen's own exp never comes to 0.
  return logs.tail(logs.size() - 1).unaryExpr([](double log) { return std::exp(2 * log); }).sum();
}

std::vector<double> contractions_by_mode(const std::vector<Eigen::ArrayXcd>& modes,
                                         const std::vector<Round>& rounds) {
  // What rounding leaves of an eigenvalue 0 would be a decay that never ends.
  const double rounding = 64 * std::numeric_limits<double>::epsilon();
  std::vector<Eigen::ArrayXd> logs;
  for (const Eigen::ArrayXcd& round : modes)
    logs.emplace_back((round.abs() <= rounding).select(0, round.abs()).log());
  Eigen::ArrayXd period = logs.front();
  for (std::size_t s = 1; s < logs.size(); ++s) period += logs[s];
  std::vector<double> found;
  for (const Round t : rounds) found.push_back(contraction(logs, period, t));
  return found;
}

/// ‖P x‖² beside the mean, by round, for columns x of mean 0.
std::vector<double> contractions_of(const MixingSchedule& schedule, RowMatrix x,
                                    const std::vector<Round>& rounds) {
  const double first = x.squaredNorm(),
               rounding = 64 * schedule.peers() * std::numeric_limits<double>::epsilon();
  std::vector<double> found;
  Round t = 0;
  for (const Round round : rounds) {
    for (; t < round; ++t) {
      x = topology::mixed_rows(*schedule.at(t), x);
      x.rowwise() -= x.colwise().mean();
    }
    const double left = x.squaredNorm();
    found.push_back(left <= rounding * rounding * first ? 0 : left);
  }
  return found;
}

double work_of(const MixingSchedule& schedule, double columns, const std::vector<Round>& rounds) {
  const auto w = schedule.at(0);
  double entries = 0;
  for (int i = 0; i < w->peers(); ++i)
    entries += 2.0 + static_cast<double>(w->in_neighbours(i).size());
  return entries * columns * static_cast<double>(rounds.empty() ? 0 : rounds.back());
}

}  // namespace

std::optional<ConsensusDecay> consensus_decay(const MixingSchedule& schedule, std::uint64_t length,
                                              const std::vector<Round>& rounds) {
  const int n = schedule.peers();
  ConsensusDecay decay;
  if (const auto modes = shared_modes(schedule)) {
    decay.distance = contractions_by_mode(*modes, rounds);
  } else if (n <= kMostProduct && work_of(schedule, n, rounds) <= kMostMixing) {
    RowMatrix beside_mean = RowMatrix::Identity(n, n);
    beside_mean.array() -= 1.0 / n;
    decay.distance = contractions_of(schedule, std::move(beside_mean), rounds);
  } else if (work_of(schedule, kSamples, rounds) <= kMostMixing) {
    RowMatrix samples(n, kSamples);
    for (int v = 0; v < kSamples; ++v)
      samples.col(v) = topology::generic_vector(n, static_cast<std::uint64_t>(v));
    decay.distance = contractions_of(schedule, std::move(samples), rounds);
    for (double& square : decay.distance) square /= kSamples;
    decay.sampled = true;
  } else {
    return std::nullopt;
  }
  for (double& square : decay.distance)
    square = std::sqrt(static_cast<double>(length) / n * square);
  return decay;
}

}  // namespace gossamer::theory
