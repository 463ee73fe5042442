// The output of `gossamer topology`: an analysed topology as text, as JSON, and as a row of a
// table.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/output/text_table.hpp"
#include "peer/storage/json.hpp"
#include "theory/hostile_bound.hpp"
#include "topology/convergence.hpp"
#include "topology/report.hpp"

namespace gossamer::cli {

/// The analysis of a topology with a given number of peers.
struct TopologyAnalysis {
  std::shared_ptr<const topology::MixingSchedule> schedule;
  topology::TopologyReport report;
  topology::Convergence convergence;
  std::optional<double> lowest_eigenvalue;  ///< as topology::lowest_eigenvalue
  std::optional<theory::HostileBounds> hostile;
  /// Each robust mixing rule, and the hostile neighbours of each peer that it withstands here.
  std::vector<std::pair<std::string, int>> breakdowns;
  std::vector<std::vector<std::vector<double>>>
      matrices;  ///< W of each round; empty: not asked for
};

/// Prints the analysis to stdout. `parameters`: values in a row.
void print_text(const TopologyAnalysis& analysis, std::uint64_t parameters);

peer::Json analysis_json(const TopologyAnalysis& analysis);

TableRow table_header();
TableRow table_row(const TopologyAnalysis& analysis);

}  // namespace gossamer::cli
