// Predicts a run on quadratic functions with full gradients: its curve, stability, rate and limit.
// All follow from the linear iteration (theory/iteration.hpp) in double precision; nothing is
// fitted.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "theory/iteration.hpp"

namespace gossamer::theory {

/// f_i(x) = ½ (x − x*)ᵀ A_i (x − x*) + h_i · (x − x*) + constant, i = 0..n−1.
struct Quadratics {
  std::vector<Eigen::MatrixXd>
      hessians;                ///< A_i, symmetric d × d; a single one where all are equal
  RowMatrix gradients;         ///< h_i = ∇f_i(x*) as rows; they sum to 0
  Eigen::RowVectorXd optimum;  ///< x*
};

struct QuadraticRun {
  const MixingSchedule& schedule;  ///< of n peers
  Recipe recipe;
  Quadratics functions;
  RowMatrix start;  ///< the peers' first parameters as rows
  double gradient_noise =
      0;  ///< standard deviation of independent noise in each coordinate of each gradient
  std::vector<Round> rounds;  ///< at which the curve is asked for, ascending
};

/// Root mean square over the peers, as a log has them: sqrt((1/n) Σ_i ‖·‖²).
struct Distances {
  double consensus = 0;  ///< of x_i − x̄
  double optimum = 0;    ///< of x_i − x*, relative to ‖x*‖
};

/// With gradient noise, distances are the roots of the expected squares.
struct QuadraticOutcome {
  std::vector<Distances> curve;  ///< by round asked for; empty where it is not known
  /// The spectral radius of a round, in the long run: what an error's slowest part is multiplied
  /// with. Stable: below 1.
  std::optional<double> rate;
  std::optional<Distances>
      limit;  ///< where a stable run ends, at the phase of W's period of the last round asked for
  std::optional<Distances> bias;       ///< the same without noise; 0 where the method is exact
  std::vector<std::string> not_known;  ///< what is missing above, and why, in words
};

/// Costs at most about kMostWork multiplications for each of the three; what would take more is
/// left out and said so.
QuadraticOutcome predict(const QuadraticRun& run);
inline constexpr double kMostWork = 2e10;

}  // namespace gossamer::theory
