// `gossamer predict`: what theory (theory/) predicts for a run before it starts, and which values
// it cannot predict.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "peer/prediction/round_time.hpp"
#include "peer/prediction/split_costs.hpp"
#include "peer/prediction/stable_step.hpp"
#include "peer/setup/setup.hpp"
#include "peer/storage/json.hpp"
#include "theory/hostile_bound.hpp"
#include "theory/quadratic.hpp"
#include "topology/convergence.hpp"
#include "train/privacy/options.hpp"

namespace gossamer::peer {

/// Largest number of points of a curve. The points are the rounds that the run logs, evenly thinned
/// out if there are more.
inline constexpr std::uint64_t kMaxPoints = 1000;

/// γ of the effective number of neighbours (topology/convergence.hpp) where none is asked for.
inline constexpr double kDecay = 0.9;

/// What a run with private gradients may tell of a training sample, at most.
struct PredictedPrivacy {
  train::PrivacyOptions options;  ///< with the noise multiplier
  double epsilon = 0;             ///< after all rounds, of the peer of which the run tells most
  int peer = 0;
  double effective_noise = 0;  ///< that hides its samples: PrivacyPlan::effective_noise
};

struct Prediction {
  std::vector<gossip::Round> rounds;        ///< the points of the curves
  std::vector<double> consensus_distance;   ///< by point; empty if theory has no curve
  std::vector<double> distance_to_optimum;  ///< by point; empty if theory has no curve
  bool sampled = false;                     ///< the curve is an estimate, to a few percent
  std::optional<double> rate;               ///< as theory::QuadraticOutcome
  std::optional<theory::Distances> limit, bias;
  double spectral_gap = 0;                           ///< NaN if unknown
  std::optional<topology::Convergence> convergence;  ///< only if the algorithm mixes
  std::optional<theory::HostileBounds> hostile;      ///< only with a rule other than the mean
  /// Exact number of bytes that all peers send in the run, with headers. Known under sync if the
  /// algorithm sends only mixed rows and W has a period.
  std::optional<std::uint64_t> bytes_sent;
  std::optional<RoundTime> round;           ///< as round_time()
  std::optional<StableStep> step;           ///< as stable_step()
  std::optional<PredictedPrivacy> privacy;  ///< only if gradients are private
  std::optional<SplitCosts> split;          ///< only if the model is cut over workers
  std::vector<std::string> not_known;       ///< the values above that are missing, with the reason
};

/// "below 0.203 in each row: any 3 neighbours of each peer", or why there is no bound.
std::string hostile_bound_text(const std::optional<theory::HostileBounds>& bounds,
                               theory::HostileBound theory::HostileBounds::* rule,
                               const topology::MixingSchedule& schedule);

/// Errors (invalid): theory says nothing about the run, because it has an attack, or because peers
/// join and leave.
Status check_predictable(const Config& config);

/// `decay`: γ of the effective number of neighbours (topology/convergence.hpp).
Prediction predict(const Setup& setup, double decay);

Json prediction_json(const Setup& setup, const Prediction& prediction);
/// The prediction as text, with at most `points` points of its curves.
std::string prediction_text(const Setup& setup, const Prediction& prediction,
                            std::size_t points = 12);

}  // namespace gossamer::peer
