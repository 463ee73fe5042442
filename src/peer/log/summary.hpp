// The summary of a whole run (summary.json), computed from the final rows of all nodes. `gossamer
// run` writes it at the end of the run, `gossamer collect` from the files of all processes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "peer/log/metrics.hpp"
#include "peer/setup/setup.hpp"
#include "peer/storage/files.hpp"

namespace gossamer::peer {

/// Metrics of all workers together.
struct NetworkMetrics {
  ConsensusDistance distance;
  train::Evaluation averaged;               ///< of the model x̄; NaN if nothing is trained
  double distance_to_optimum = 0;           ///< of the workers' models; NaN if no optimum is known
  double averaged_distance_to_optimum = 0;  ///< of x̄
  std::vector<double> backdoor_success;     ///< of each honest worker's model; empty: no backdoor
};
/// `rows`: the parameters of the honest workers, in host memory. `nodes`: their ids.
NetworkMetrics network_metrics(const Setup& setup, const RowViews& rows,
                               const std::vector<int>& nodes);

/// Mean, least and largest value; all three are null if a value is not finite.
Json mean_and_range(const std::vector<double>& values);

/// What a summary contains in addition to the metrics of the final rows.
struct RunTotals {
  std::string reason = "finished";  ///< EndMetrics::reason of the first process that did not finish
  std::uint64_t rounds = 0;         ///< completed by all nodes
  double wall_seconds = 0;
  double virtual_seconds = 0;  ///< NaN for a run in real time
  std::uint64_t node_steps = 0;
  std::uint64_t bytes_sent = 0;
  std::vector<double> train_losses;  ///< last recorded one of each worker; NaN if there is none
  std::vector<int> lost_peers = {};  ///< peers whose rows are missing
  /// Peers of an open run that have none, because they took part in no round.
  std::vector<int> unseen_peers = {};
  /// Of each worker, as its log has it, for a workload that cannot evaluate the rows; or empty.
  std::vector<train::Evaluation> evaluations = {};
  std::vector<double> epsilons = {};  ///< of each worker; empty: gradients are not private
  /// How many rows of each peer were missing in a mix of another one, or of another round than it;
  /// nothing where the logs are not at hand.
  std::optional<std::map<int, std::uint64_t>> deviations = {};
};

/// Those of `nodes` that are workers and not hostile, in their order.
std::vector<int> honest_peers(const Setup& setup, const std::vector<int>& nodes);

/// The workers that took part in the last of `rounds` rounds and have a model of it
/// (Setup::is_current), ascending: metrics are about them.
std::vector<int> current_workers(const Setup& setup, gossip::Round rounds);

/// The workers that are not lost and took part in the last of `rounds` rounds, ascending: the
/// summary is about them.
std::vector<int> present_workers(const Setup& setup, gossip::Round rounds,
                                 const std::vector<int>& lost);

/// `rows`: the final parameters of all workers that are neither lost nor unseen, in their order and
/// in host memory. The metrics of models are those of honest workers that took part in the last
/// round, of which there is one at least.
Json make_summary(const Setup& setup, const RunTotals& totals, const RowViews& rows);

/// The numbers of peers, servers and parameters, which a caller can check before a run.
Json size_json(const Setup& setup);

/// The main values of a summary as text, for a terminal.
std::string summary_text(const Json& summary);

}  // namespace gossamer::peer
