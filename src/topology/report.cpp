#include "topology/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "topology/graph.hpp"
#include "topology/lattice.hpp"

namespace gossamer::topology {
namespace {

/// Accumulated over the rounds of a period.
struct PeriodTotals {
  std::vector<Graph> graphs;
  std::uint64_t busiest_sends = 0;  ///< over the rounds, values of the peer that sends most
};

void add_round(const MixingMatrix& w, TopologyReport& report, const MostSent& most_sent,
               PeriodTotals& totals) {
  const bool first = totals.graphs.empty();
  for (int i = 0; i < w.peers(); ++i) {
    const int degree = static_cast<int>(w.in_neighbours(i).size());
    report.degree_min = first && i == 0 ? degree : std::min(report.degree_min, degree);
    report.degree_max = std::max(report.degree_max, degree);
  }
  totals.busiest_sends += most_sent(w);
  totals.graphs.push_back(graph_of(w));
  report.symmetric = report.symmetric && w.symmetric();
  report.doubly_stochastic = report.doubly_stochastic && w.doubly_stochastic();
}

/// A spectrum without a period is sampled, which is cheap at any size.
bool gap_is_quick(const MixingSchedule& schedule) {
  if (!schedule.lattice().empty()) return true;
  const int most = schedule.period() == 1 ? kQuickGapStatic : kQuickGapVarying;
  return schedule.period() == 0 || schedule.peers() <= most;
}

}  // namespace

Result<TopologyReport> examine(const ScheduleRequest& request, std::uint64_t parameters) {
  GOSSAMER_TRY(const std::unique_ptr<MixingSchedule> schedule, make_schedule(request));
  return examine(*schedule, request, parameters);
}

Result<TopologyReport> examine(const MixingSchedule& schedule, const ScheduleRequest& request,
                               std::uint64_t parameters, Effort effort, const MostSent& most_sent) {
  const bool whole = effort == Effort::whole;
  if (parameters > kMaximumParameters)
    return invalid_error(fmt::format("{} parameters a row are too many, give at most {}",
                                     parameters, kMaximumParameters));
  TopologyReport report;
  report.topology = request.kind;
  report.peers = schedule.peers();
  report.weights = to_string(schedule.weighing());
  report.period = schedule.period();
  report.symmetric = report.doubly_stochastic = true;  // until a round says otherwise

  const Round rounds = schedule.period() > 0 ? static_cast<Round>(schedule.period())
                                             : sampled_rounds(schedule.peers());
  PeriodTotals totals;
  const MostSent one_row = [parameters](const MixingMatrix& w) {
    std::uint64_t hearers = 0;
    for (int i = 0; i < w.peers(); ++i)
      hearers = std::max<std::uint64_t>(hearers, w.out_neighbours(i).size());
    return parameters * hearers;
  };
  for (Round t = 0; t < rounds; ++t)
    add_round(*schedule.at(t), report, most_sent ? most_sent : one_row, totals);
  const Graph all = union_of(totals.graphs);
  report.edges = count_edges(all) / (report.symmetric ? 2 : 1);
  const bool alike = is_lattice(schedule);
  if (whole || alike || schedule.peers() <= kQuickDiameter)
    if (const auto found = diameter(all, alike))
      report.diameter = found->hops, report.diameter_exact = found->exact;
  report.connected = report.diameter || !find_unreachable(all);
  report.spectral_gap = whole || gap_is_quick(schedule) ? spectral_gap(schedule)
                                                        : std::numeric_limits<double>::quiet_NaN();
  report.spectral_gap_expected = schedule.period() == 0;
  report.bytes_per_round_per_peer = (sizeof(float) * totals.busiest_sends + rounds / 2) / rounds;
  return report;
}

std::vector<std::vector<std::vector<double>>> period_matrices(const MixingSchedule& schedule,
                                                              int drawn_rounds) {
  const int rounds = schedule.period() > 0 ? schedule.period() : drawn_rounds;
  std::vector<std::vector<std::vector<double>>> matrices;
  for (int t = 0; t < rounds; ++t) {
    const Eigen::MatrixXd w = dense(*schedule.at(static_cast<Round>(t)));
    auto& rows = matrices.emplace_back(static_cast<std::size_t>(w.rows()));
    for (Eigen::Index i = 0; i < w.rows(); ++i)
      rows[static_cast<std::size_t>(i)].assign(w.row(i).begin(), w.row(i).end());
  }
  return matrices;
}

}  // namespace gossamer::topology
