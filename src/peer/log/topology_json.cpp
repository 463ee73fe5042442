#include "peer/log/topology_json.hpp"

#include <algorithm>
#include <set>
#include <utility>

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

Json edge_list(const topology::MixingSchedule& schedule, const topology::TopologyReport& report) {
  if (report.edges > kMaxEdges) return {};
  std::set<std::pair<int, int>> edges;
  for (int t = 0; t < std::max(1, schedule.period()); ++t) {
    const auto matrix = schedule.at(static_cast<topology::Round>(t));
    for (int i = 0; i < matrix->peers(); ++i)
      for (int j : matrix->out_neighbours(i))
        if (!report.symmetric || i < j) edges.emplace(i, j);
  }
  Json list = Json::array();
  for (const auto& [i, j] : edges) list.push_back({i, j});
  return list;
}

}  // namespace gossamer::peer
