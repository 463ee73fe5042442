// The report and the edges of a topology as JSON, for headers of logs, summaries and `gossamer
// topology --json`.
#pragma once

#include "peer/setup/setup.hpp"
#include "peer/storage/json.hpp"
#include "topology/mixing_matrix.hpp"
#include "topology/report.hpp"

namespace gossamer::peer {

Json report_json(const topology::TopologyReport& report);

/// The report of a run's topology; where participants change, also the list "changes": a report of
/// each of their topologies, with the round from which on they take part, and their ids.
Json topology_json(const Setup& setup);

/// Longest list of edges that edge_list() returns.
inline constexpr std::int64_t kMaxEdges = 100000;

/// The edges [i, j] of all rounds of the period, and of all participants, without duplicates; only
/// i < j if the schedule is symmetric. Null if there are more than kMaxEdges.
Json edge_list(const topology::MixingSchedule& schedule, const topology::TopologyReport& report);

/// Of one of MixingSchedule::parts(), of participants with these ids: its report, and its edges as
/// edge_list() has them.
Json participants_topology(const topology::MixingSchedule& part, const std::vector<int>& ids,
                           const topology::TopologyReport& report);

}  // namespace gossamer::peer
