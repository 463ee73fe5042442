// summary.json: a whole run in one record, from the final rows of all nodes. `gossamer run` writes
// it at its end, `gossamer collect` from the files of a network's processes: the same code, so the
// same figures.
#pragma once

#include <string>
#include <vector>

#include "peer/log/metrics.hpp"
#include "peer/runtime/setup.hpp"
#include "peer/storage/files.hpp"

namespace gossamer::peer {

/// Figures of all nodes that train together.
struct NetworkMetrics {
  double consensus_distance = 0;
  train::Evaluation averaged;      ///< of the model x̄; NaN where nothing is trained
  double distance_to_optimum = 0;  ///< NaN where no optimum is known
};
NetworkMetrics network_metrics(const Setup& setup, const RowViews& rows);

/// What a summary needs beside the final rows.
struct RunTotals {
  std::string reason = "finished";
  std::uint64_t rounds = 0;
  double wall_seconds = 0;
  double virtual_seconds = 0;  ///< NaN for a network in real time
  std::uint64_t node_steps = 0;
  std::uint64_t bytes_sent = 0;
  std::vector<double>
      train_losses;            ///< last logged one of each of these nodes; NaN where there is none
  std::vector<int> lost = {};  ///< peers that are left out
};

/// `rows`: final parameters of all nodes that train, in order.
Json make_summary(const Setup& setup, const RunTotals& totals, const RowViews& rows);

/// A few lines for people.
std::string summary_text(const Json& summary);

}  // namespace gossamer::peer
