// Records of logs, as a process writes them, for the tests of peer/watch.
#pragma once

#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include "peer/storage/json.hpp"
#include "peer/watch/run_view.hpp"

namespace gossamer::peer::testing {

/// The header of a process that hosts `hosted` of `peers` peers on a ring.
inline Json header_of(int peers, const std::vector<int>& hosted, const std::string& run = "r") {
  Json edges = Json::array();
  for (int peer = 0; peer < peers; ++peer) {
    const int next = (peer + 1) % peers;
    edges.push_back({std::min(peer, next), std::max(peer, next)});
  }
  return {{"record", "header"},
          {"schema", 1},
          {"version", "1.2.3"},
          {"run_id", run},
          {"peers", peers},
          {"servers", 0},
          {"hosted", hosted},
          {"parameters", 3},
          {"time", "virtual"},
          {"topology", {{"edge_list", edges}, {"symmetric", true}, {"lattice", {peers}}}},
          {"config",
           {{"algorithm", {{"kind", "dpsgd"}, {"policy", "sync"}}},
            {"attack", {{"peers", Json::array()}}},
            {"log", {{"every", 2}}},
            {"run", {{"rounds", 100}}},
            {"topology", {{"kind", "ring"}}}}}};
}

inline Json round_of(int peer, int round, double loss) {
  return {{"record", "round"},
          {"round", round},
          {"peer", peer},
          {"seconds", 0.5 * round},
          {"train_loss", loss},
          {"test_loss", loss + 1},
          {"test_accuracy", nullptr},
          {"bytes_sent", 100 * round},
          {"bytes_received", 90 * round},
          {"train_seconds", 0.1},
          {"wait_seconds", 0.2},
          {"mix_seconds", 0.3}};
}

inline Json network_of(int round, double distance, const std::vector<double>& distances) {
  return {{"record", "network"},
          {"round", round},
          {"consensus_distance", distance},
          {"averaged_loss", 0.25},
          {"averaged_accuracy", nullptr},
          {"distance_to_optimum", nullptr},
          {"averaged_distance_to_optimum", nullptr},
          {"distances_from_mean", distances}};
}

inline Json link_of(int peer, int neighbour, bool lost, const std::string& cause = "gone") {
  return {{"record", "membership"},
          {"round", 4},
          {"peer", peer},
          {"seconds", 2.0},
          {"event", lost ? "link_lost" : "link_restored"},
          {"neighbour", neighbour},
          {"reachable_peers", nullptr},
          {"cause", lost ? Json(cause) : Json()}};
}

inline Json end_of(const std::string& reason) {
  return {{"record", "end"},
          {"reason", reason},
          {"message", ""},
          {"rounds", 100},
          {"seconds", 1.5},
          {"wall_seconds", 1.5},
          {"node_steps", 3},
          {"bytes_sent", 8},
          {"refused_connections", nullptr},
          {"lending_links", nullptr},
          {"row_hashes", {"0a"}}};
}

inline NodeFigures node_of(const RunView& view, int node) {
  for (const auto& [id, figures] : view.after(0).nodes)
    if (id == node) return figures;
  FAIL("no such node");
  return {};
}

}  // namespace gossamer::peer::testing
