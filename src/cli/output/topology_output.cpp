#include "cli/output/topology_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>

#include "base/quantity_text.hpp"
#include "peer/log/topology_json.hpp"
#include "peer/prediction/prediction.hpp"

namespace gossamer::cli {

using namespace peer;
namespace {

std::string yes_or_no(bool truth) { return truth ? "yes" : "no"; }

std::string gap_text(double gap) {
  return std::isnan(gap) ? "not known" : fmt::format("{:.6g}", gap);
}

std::string range_text(int min, int max) {
  return min == max ? fmt::to_string(min) : fmt::format("{} to {}", min, max);
}

std::string rounds_text(const std::optional<topology::Round>& rounds, const char* none) {
  return rounds ? fmt::format("{} round{}", *rounds, *rounds == 1 ? "" : "s") : none;
}

/// The gaps of the rounds of a period, with repetition counts: "0.5 0 × 3".
std::string round_gaps_text(const std::vector<double>& gaps) {
  constexpr std::size_t kMaxGroups = 12;
  std::string text;
  std::size_t groups = 0;
  for (std::size_t i = 0, end = 0; i < gaps.size(); i = end, ++groups) {
    const std::string gap = std::isnan(gaps[i]) ? "?" : fmt::format("{:.3g}", gaps[i]);
    while (end < gaps.size() &&
           (std::isnan(gaps[end]) ? "?" : fmt::format("{:.3g}", gaps[end])) == gap)
      ++end;
    if (groups == kMaxGroups) return text + " …";
    text += (i == 0 ? "" : " ") + gap + (end - i > 1 ? fmt::format(" × {}", end - i) : "");
  }
  return text;
}

/// "14 by clipped; 7 by cs_plus, median".
std::string breakdowns_text(const std::vector<std::pair<std::string, int>>& breakdowns) {
  std::map<int, std::string, std::greater<>> rules;
  for (const auto& [rule, hostile] : breakdowns) {
    std::string& names = rules[hostile];
    names += (names.empty() ? "" : ", ") + rule;
  }
  std::string text;
  for (const auto& [hostile, names] : rules)
    text += fmt::format("{}{} by {}", text.empty() ? "" : "; ", hostile, names);
  return text;
}

}  // namespace

void print_text(const TopologyAnalysis& analysis, std::uint64_t parameters) {
  const topology::TopologyReport& report = analysis.report;
  const topology::Convergence& convergence = analysis.convergence;
  const auto line = [](std::string_view name, const std::string& value) {
    fmt::print("  {:<30}{}\n", name, value);
  };
  fmt::print("{} of {} peers, {} weights\n", report.topology, report.peers, report.weights);
  line("edges", fmt::format("{}{}", report.edges, report.symmetric ? "" : " (directed)"));
  line("in-neighbours per round", range_text(report.degree_min, report.degree_max));
  line("diameter",
       report.diameter
           ? fmt::format("{}{} hops", report.diameter_exact ? "" : "at least ", *report.diameter)
           : "not connected");
  line("period", report.period == 0
                     ? "none (random)"
                     : fmt::format("{} round{}", report.period, report.period == 1 ? "" : "s"));
  line("symmetric", yes_or_no(report.symmetric));
  line("doubly stochastic", yes_or_no(report.doubly_stochastic));
  line("connected", yes_or_no(report.connected));
  line("spectral gap",
       gap_text(report.spectral_gap) + (report.spectral_gap_expected ? " (expected)" : ""));
  if (analysis.lowest_eigenvalue)
    line("lowest eigenvalue of W", fmt::format("{:.6g}", *analysis.lowest_eigenvalue));
  if (report.period > 1) line("gap of each round", round_gaps_text(convergence.round_gaps));
  line("exactly averaged", convergence.rounds_to_exact
                               ? "after " + rounds_text(convergence.rounds_to_exact, "")
                               : "never");
  line("effective neighbours",
       std::isnan(convergence.effective_neighbours)
           ? "not known"
           : fmt::format("{:.4g} (γ = {}{})", convergence.effective_neighbours, convergence.decay,
                         convergence.effective_neighbours_sampled ? ", sampled" : ""));
  line("sent per round and peer", fmt::format("{} bytes (busiest peer, rows of {} float32)",
                                              report.bytes_per_round_per_peer, parameters));
  line("distance reduced to 1e-6",
       convergence.rounds_to_millionth
           ? fmt::format("after {}: {} messages, {} in total",
                         rounds_text(convergence.rounds_to_millionth, ""),
                         count_text(convergence.messages_to_millionth),
                         bytes_text(convergence.bytes_to_millionth))
           : "not known");
  line("hostile weight, ClippedGossip",
       hostile_bound_text(analysis.hostile, &theory::HostileBounds::clipped, *analysis.schedule));
  line("hostile weight, CS+",
       hostile_bound_text(analysis.hostile, &theory::HostileBounds::cs_plus, *analysis.schedule));
  line("hostile neighbours, by rule", breakdowns_text(analysis.breakdowns));
}

Json analysis_json(const TopologyAnalysis& analysis) {
  const auto rounds = [](const std::optional<topology::Round>& count) {
    return count ? Json(*count) : Json();
  };
  const topology::Convergence& convergence = analysis.convergence;
  Json json = report_json(analysis.report);
  json["diameter_at_least"] = analysis.report.diameter ? Json(*analysis.report.diameter) : Json();
  json["spectral_gap_expected"] = analysis.report.spectral_gap_expected;
  json["lowest_eigenvalue"] =
      analysis.lowest_eigenvalue ? Json(*analysis.lowest_eigenvalue) : Json();
  json["round_gaps"] = Json::array();
  for (const double gap : convergence.round_gaps) json["round_gaps"].push_back(finite_or_null(gap));
  json["rounds_to_exact"] = rounds(convergence.rounds_to_exact);
  json["decay"] = convergence.decay;
  json["effective_neighbours"] = finite_or_null(convergence.effective_neighbours);
  json["effective_neighbours_sampled"] = convergence.effective_neighbours_sampled;
  json["rounds_to_millionth"] = rounds(convergence.rounds_to_millionth);
  json["messages_to_millionth"] =
      convergence.rounds_to_millionth ? Json(convergence.messages_to_millionth) : Json();
  json["bytes_to_millionth"] =
      convergence.rounds_to_millionth ? Json(convergence.bytes_to_millionth) : Json();
  const auto& bounds = analysis.hostile;
  json["hostile_weight_bound"] = bounds ? Json(bounds->clipped.weight) : Json();
  json["hostile_neighbours_bound"] = bounds ? Json(bounds->clipped.neighbours) : Json();
  json["cs_plus_weight_bound"] = bounds ? Json(bounds->cs_plus.weight) : Json();
  json["cs_plus_neighbours_bound"] = bounds ? Json(bounds->cs_plus.neighbours) : Json();
  for (const auto& [rule, hostile] : analysis.breakdowns)
    json["most_hostile_neighbours"][rule] = hostile;
  if (!analysis.matrices.empty()) json["matrix"] = analysis.matrices;
  return json;
}

TableRow table_header() {
  return {"topology", "n",      "weights", "edges",   "in-deg",   "diameter", "period",
          "gap",      "n_W(γ)", "exact",   "to 10⁻⁶", "messages", "bytes",    "δ_max"};
}

TableRow table_row(const TopologyAnalysis& analysis) {
  const topology::TopologyReport& report = analysis.report;
  const topology::Convergence& convergence = analysis.convergence;
  const bool known = convergence.rounds_to_millionth.has_value();
  return {report.topology,
          fmt::to_string(report.peers),
          report.weights,
          fmt::to_string(report.edges),
          report.degree_min == report.degree_max
              ? fmt::to_string(report.degree_min)
              : fmt::format("{}–{}", report.degree_min, report.degree_max),
          report.diameter ? fmt::format("{}{}", report.diameter_exact ? "" : "≥ ", *report.diameter)
                          : "–",
          report.period == 0 ? "random" : fmt::to_string(report.period),
          std::isnan(report.spectral_gap) ? "–" : fmt::format("{:.3g}", report.spectral_gap),
          std::isnan(convergence.effective_neighbours)
              ? "–"
              : fmt::format("{:.3g}", convergence.effective_neighbours),
          convergence.rounds_to_exact ? fmt::to_string(*convergence.rounds_to_exact) : "never",
          known ? fmt::to_string(*convergence.rounds_to_millionth) : "–",
          known ? count_text(convergence.messages_to_millionth) : "–",
          known ? bytes_text(convergence.bytes_to_millionth) : "–",
          analysis.hostile ? fmt::format("{:.2g}", analysis.hostile->clipped.weight) : "–"};
}

}  // namespace gossamer::cli
