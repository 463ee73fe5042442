// What the processes of a network have measured, and the tables of all nodes that follow.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "peer/probe/estimates.hpp"
#include "peer/storage/probe_tables.hpp"

namespace gossamer::peer {

/// The durations of the local steps of a process's peers, which it trains together.
struct StepEstimate {
  double step_ms = 0, spread = 0;
};

/// What one process knows after the measurements.
struct ProcessMeasurement {
  ProcessMeasurement() = default;
  explicit ProcessMeasurement(std::size_t processes) : links(processes) {}

  /// The link to another process, and the one from it. The process of the lower id measures it; at
  /// the other one all is 0.
  struct Pair {
    LatencyEstimate latency;
    double sent_mbit_s = 0, received_mbit_s = 0;  ///< 0: without limit
  };
  std::vector<Pair> links;                        ///< by process
  double uplink_mbit_s = 0, downlink_mbit_s = 0;  ///< to, and from, all others at once
  StepEstimate steps;

  /// As the values of a message, of message_length() of as many processes.
  std::vector<float> values() const;
  static std::size_t message_length(std::size_t processes) { return 4 * processes + 4; }
  /// Nothing if a value is none that a measurement has: not finite, negative, or above 1e9.
  static std::optional<ProcessMeasurement> of(std::span<const float> values);
};

/// The tables of the nodes 0 … n − 1, whose processes host `hosted`. Nodes of one process exchange
/// rows in its memory: without delay or limit. They share what its links to others carry equally.
/// Nodes from `trained_nodes` on are servers, which train nothing.
ProbeTables tables_of(const std::vector<ProcessMeasurement>& measured,
                      const std::vector<std::vector<int>>& hosted, int trained_nodes);

}  // namespace gossamer::peer
