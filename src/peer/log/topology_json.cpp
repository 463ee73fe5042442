#include "peer/log/topology_json.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "base/id_list.hpp"

namespace gossamer::peer {

Json report_json(const topology::TopologyReport& report) {
  Json json;
  json["topology"] = report.topology;
  json["peers"] = report.peers;
  json["weights"] = report.weights;
  json["edges"] = report.edges;
  json["degree_min"] = report.degree_min;
  json["degree_max"] = report.degree_max;
  json["diameter"] = report.diameter && report.diameter_exact ? Json(*report.diameter) : Json();
  json["period"] = report.period;
  json["symmetric"] = report.symmetric;
  json["doubly_stochastic"] = report.doubly_stochastic;
  json["connected"] = report.connected;
  json["spectral_gap"] = finite_or_null(report.spectral_gap);
  json["bytes_per_round_per_peer"] = report.bytes_per_round_per_peer;
  return json;
}

namespace {

using Edges = std::set<std::pair<int, int>>;

/// Adds the edges between participants with these ids, of any round of the period.
void add_edges(const topology::MixingSchedule& part, const std::vector<int>& ids, bool symmetric,
               Edges& edges) {
  for (int t = 0; t < std::max(1, part.period()); ++t) {
    const auto matrix = part.at(static_cast<topology::Round>(t));
    for (int i = 0; i < matrix->peers(); ++i)
      for (int j : matrix->out_neighbours(i))
        if (!symmetric || i < j)
          edges.emplace(ids[static_cast<std::size_t>(i)], ids[static_cast<std::size_t>(j)]);
  }
}

Json list_of(const Edges& edges) {
  if (edges.size() > static_cast<std::size_t>(kMaxEdges)) return {};
  Json list = Json::array();
  for (const auto& [i, j] : edges) list.push_back({i, j});
  return list;
}

}  // namespace

Json edge_list(const topology::MixingSchedule& schedule, const topology::TopologyReport& report) {
  if (report.edges > kMaxEdges) return {};
  Edges edges;
  const std::vector<const topology::MixingSchedule*> parts = schedule.parts();
  for (std::size_t k = 0; k < parts.size(); ++k)
    add_edges(*parts[k], schedule.participants().changes()[k].peers, report.symmetric, edges);
  return list_of(edges);
}

Json participants_topology(const topology::MixingSchedule& part, const std::vector<int>& ids,
                           const topology::TopologyReport& report) {
  Json json = report_json(report);
  Edges edges;
  add_edges(part, ids, report.symmetric, edges);
  json["edge_list"] = list_of(edges);
  return json;
}

Json topology_json(const Setup& setup) {
  Json json = report_json(setup.report());
  const topology::Participants& participants = setup.schedule->participants();
  if (participants.are_all()) return json;
  const auto changes = participants.changes();
  for (std::size_t k = 0; k < changes.size(); ++k) {
    Json change = report_json(setup.reports[k]);
    change["round"] = changes[k].first;
    change["participants"] = ids_text(changes[k].peers);
    json["changes"].push_back(std::move(change));
  }
  return json;
}

}  // namespace gossamer::peer
