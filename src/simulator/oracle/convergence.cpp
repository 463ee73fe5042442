// The oracle's judgement of where a part that is left in the end has come to: sums, how near its
// peers are, and to what.
#include <Eigen/SVD>
#include <algorithm>
#include <cmath>

#include "simulator/oracle/judge.hpp"
#include "simulator/world/process.hpp"

namespace gossamer::gossip::sim {

/// W of the part in round t, links that are lost left out.
Eigen::MatrixXd Judge::matrix_of(const std::vector<int>& part, Round t) const {
  const auto size = static_cast<Eigen::Index>(part.size());
  Eigen::MatrixXd rows = Eigen::MatrixXd::Identity(size, size);
  for (Eigen::Index a = 0; a < size; ++a)
    for (Eigen::Index b = 0; b < size; ++b) {
      const int here = part[static_cast<std::size_t>(a)], there = part[static_cast<std::size_t>(b)];
      if (!joined(here, there)) continue;
      for (const topology::Neighbour& j : w(t).in_neighbours(peer_of(here))) {
        if (j.peer != peer_of(there)) continue;
        rows(a, b) += j.weight;
        rows(a, a) -= j.weight;
      }
    }
  return rows;
}

double Judge::most_at(const std::vector<int>& part, std::size_t k) const {
  double most = 1;
  for (const int i : part)
    for (const RoundRecord& record : life(i).rounds)
      for (const float value : record.begin[k])
        most = std::max(most, std::abs(static_cast<double>(value)));
  return most;
}

/// Σ y = Σ g of gradient tracking, Σ d = 0 of D² and EXTRA, Σ w = n of push-sum.
void Judge::judge_sums(const std::vector<int>& part) {
  if (parts_.policy != Policy::sync) return;
  const bool tracks = scenario_.algorithm == "gradient_tracking",
             pushes = scenario_.algorithm == "push_sum";
  if (!tracks && !pushes && scenario_.algorithm != "d2" && scenario_.algorithm != "extra") return;
  const std::size_t first = pushes ? static_cast<std::size_t>(scenario_.length) : 0,
                    end = pushes ? first + 1 : static_cast<std::size_t>(scenario_.length);
  for (std::size_t k = first; k < end; ++k) {
    double sum = 0, due = pushes ? static_cast<double>(part.size()) : 0;
    for (const int i : part) {
      const RoundRecord& record = *this->record(i, last_ - 1);
      sum += record.end[1][k];
      if (tracks) due += record.end[2][k];
    }
    const double bound = 16 * kRounding * static_cast<double>(last_) *
                         static_cast<double>(part.size()) * most_at(part, 1);
    hold(std::abs(sum - due) <= bound, "sums",
         "the peers {} have the sum {:.9g} at value {} of row {}, where {:.9g} is due, to {:.2g}",
         names(part), sum, k, parts_.rows[1].name, due, bound);
  }
}

void Judge::judge_convergence(const std::vector<int>& part, Round calm) {
  const auto size = static_cast<double>(part.size());
  const Eigen::MatrixXd left = matrix_of(part, calm),
                        mean = Eigen::MatrixXd::Constant(left.rows(), left.cols(), 1 / size);
  const double rho = part.size() == 1
                         ? 0
                         : Eigen::JacobiSVD<Eigen::MatrixXd>(left - mean).singularValues()(0),
               gap = 1 - rho;
  const auto rounds = static_cast<double>(last_ - calm);
  const double apart = distance(part, calm, false, {}),
               apart_after = distance(part, last_ - 1, true, {});
  const double floor = 64 * kRounding * most_at(part, 0) *
                       std::sqrt(static_cast<double>(scenario_.length)) / std::max(gap, 1e-3);
  if (scenario_.algorithm == "consensus") {
    const double bound = std::pow(rho, rounds) * apart + floor;
    hold(apart_after <= bound, "consensus",
         "the peers {} are {:.3g} apart after {} rounds without a fault, where a gap of {:.3g} "
         "makes it {:.3g}",
         names(part), apart_after, rounds, gap, bound);
    return;
  }
  Row optimum(static_cast<std::size_t>(scenario_.length));
  for (const int i : part) {
    const FloatRow target = target_of(scenario_, peer_of(i));
    for (std::size_t k = 0; k < optimum.size(); ++k) optimum[k] += target[k] / size;
  }
  const double before = distance(part, calm, false, optimum),
               after = distance(part, last_ - 1, true, optimum);
  const bool exact = scenario_.algorithm == "gradient_tracking" || scenario_.algorithm == "d2" ||
                     scenario_.algorithm == "extra";
  // No closed form holds for all three: of the parts of 20,000 seeds the slowest went at 0.24 of
  // the smaller of gap and step size.
  const double slowed = std::exp(-0.2 * rounds * std::min(gap, scenario_.rate));
  if (exact)
    hold(after <= slowed * (before + 1) + floor / scenario_.rate, "optimum",
         "{}'s peers {} are {:.3g} from their optimum after {} rounds without a fault, where they "
         "were {:.3g} before and {:.3g} is due",
         scenario_.algorithm, names(part), after, rounds, before, slowed * (before + 1));
  // f_i are alike but for their optima, so the mean of D-PSGD's rows goes straight to the part's.
  if (scenario_.algorithm == "dpsgd") {
    const double shrunk = std::pow(1 - scenario_.rate, rounds * scenario_.local_steps);
    const double mean_before = mean_distance(part, calm, false, optimum),
                 mean_after = mean_distance(part, last_ - 1, true, optimum);
    hold(mean_after <= shrunk * mean_before * (1 + 1e-3) + floor / scenario_.rate, "descent",
         "the mean of the peers {} is {:.3g} from their optimum, where {:.3g} was due", names(part),
         mean_after, shrunk * mean_before);
  }
}

Row Judge::row_at(int i, Round t, bool end) const {
  const RoundRecord& record = *this->record(i, t);
  const FloatRow& row = end ? record.end[0] : record.begin[0];
  return {row.begin(), row.end()};
}
Row Judge::mean_of(const std::vector<int>& part, Round t, bool end) const {
  Row mean(static_cast<std::size_t>(scenario_.length));
  for (const int i : part) {
    const Row row = row_at(i, t, end);
    for (std::size_t k = 0; k < mean.size(); ++k)
      mean[k] += row[k] / static_cast<double>(part.size());
  }
  return mean;
}
double Judge::norm_between(const Row& a, const Row& b) {
  double squares = 0;
  for (std::size_t k = 0; k < a.size(); ++k) squares += (a[k] - b[k]) * (a[k] - b[k]);
  return std::sqrt(squares);
}
/// Root mean square distance to `point`; to their mean where that is empty.
double Judge::distance(const std::vector<int>& part, Round t, bool end, Row point) const {
  if (point.empty()) point = mean_of(part, t, end);
  double squares = 0;
  for (const int i : part) squares += std::pow(norm_between(row_at(i, t, end), point), 2);
  return std::sqrt(squares / static_cast<double>(part.size()));
}
double Judge::mean_distance(const std::vector<int>& part, Round t, bool end,
                            const Row& point) const {
  return norm_between(mean_of(part, t, end), point);
}

}  // namespace gossamer::gossip::sim
