// A run foretold: what theory says of it before it starts (theory/), and in plain words what it
// does not say.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "peer/prediction/round_time.hpp"
#include "peer/runtime/setup.hpp"
#include "peer/storage/files.hpp"
#include "theory/quadratic.hpp"
#include "topology/outlook.hpp"

namespace gossamer::peer {

/// A curve's points: those rounds that the run logs, thinned out evenly where they are more than
/// kMostPoints.
inline constexpr std::uint64_t kMostPoints = 1000;

struct Prediction {
  std::vector<gossip::Round> rounds;
  std::vector<double> consensus_distance;   ///< by `rounds`; empty where theory has no curve
  std::vector<double> distance_to_optimum;  ///< the same
  bool sampled = false;                     ///< the curve is an estimate to a few percent
  std::optional<double> rate;               ///< as theory::QuadraticOutcome
  std::optional<theory::Distances> limit, bias;
  double spectral_gap = 0;                   ///< NaN: not known
  std::optional<topology::Outlook> outlook;  ///< where the algorithm mixes
  /// Bytes of all peers in the whole run, headers included, exactly: where the algorithm sends
  /// nothing but mixed rows, by a W with a period, under sync.
  std::optional<std::uint64_t> bytes_sent;
  std::optional<RoundTime> round;      ///< of virtual time; none: as round_time()
  std::vector<std::string> not_known;  ///< what is missing above, and why
};

/// `decay`: γ of the effective neighbours (topology/outlook.hpp).
Prediction predict(const Setup& setup, double decay);

Json prediction_json(const Setup& setup, const Prediction& prediction);
/// Some lines for people, at most `points` of the curve's.
std::string prediction_text(const Setup& setup, const Prediction& prediction,
                            std::size_t points = 12);

}  // namespace gossamer::peer
