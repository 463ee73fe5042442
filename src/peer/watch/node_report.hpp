// What a process says of one of its nodes, beside records of rounds, to pages of other processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "peer/storage/json.hpp"

namespace gossamer::peer {

struct NodeReport {
  /// The most neighbours of a node that are taken for suspected; the most that have a route.
  static constexpr std::size_t kMostLinks = 64;
  /// The most events that travel together: the newest ones.
  static constexpr std::size_t kMostEvents = 8;

  /// As in a membership record (docs/LOG.md).
  struct Route {
    std::string way;
    int relay = -1;  ///< -1: none
    bool operator==(const Route&) const = default;
  };

  bool joined = false;          ///< it has joined the running network
  Json sent_to = {};            ///< LinkTraffic::sent_by
  std::set<int> suspects = {};  ///< the neighbours that it suspects to be lost
  /// By neighbour: how the connection of its link goes, where that is not directly.
  std::map<int, Route> routes = {};
  /// Rises by 1 with each event of the node, and over a restart of its process; 0: none yet.
  std::uint64_t last_event = 0;
  std::vector<Json> events = {};  ///< membership records, the newest one last

  bool operator==(const NodeReport&) const = default;
};

/// {"record": "node", …}, with the fields that are not empty, and at most kMostLinks neighbours.
Json record_of(const NodeReport& report);

/// The report in such a record, which may come from another process and be anything: what is no
/// report of `node`, of a run with so many nodes, is left out.
NodeReport report_of(const Json& record, int node, int nodes);

}  // namespace gossamer::peer
