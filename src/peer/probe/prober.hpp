// One process's part in the measurements of a network, as messages of an algorithm: over the links
// that training uses, with their encryption, limits and deadlines, and in virtual time too.
//
//   pairs    a round-robin tournament (tournament.hpp): no process takes part in two measurements
//            at once. The lower process leads: echoes of one value, then transfers both ways.
//   nodes    each process in turn leads transfers to all others at once, and then from all others:
//            what its links share may be less than what they carry one by one.
//   gather   all measurements go to process 0.
//
// A transfer is repeated with twice the bytes until it lasts long enough (estimates.hpp). Each
// measurement begins with a message of every follower, so that all are ready.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "gossip/node/node.hpp"
#include "gossip/scheduler.hpp"
#include "peer/probe/measurement.hpp"

namespace gossamer::peer {

/// The rows of a node that measures, in their order, each with a channel of its own.
enum ProbeRow : int {
  kSourceRow,  ///< what transfers send, kMostPartValues values
  kSinkRow,    ///< what transfers receive, as long
  kNumberRow,  ///< single numbers and measurements
};

/// What one process needs to know.
struct ProbePlan {
  std::vector<int> processes;  ///< the lowest node of each process, ascending; they measure
  /// The run cannot continue: a process sends what no measurement has. Called at most once a node.
  std::function<void(Error)> on_error = [](const Error&) {};
};

/// Thread: the scheduler's.
class Prober {
 public:
  /// `node` is one of the plan's. All outlive this object.
  Prober(const gossip::Scheduler& scheduler, gossip::Node& node, const ProbePlan& plan);

  /// All measurements, `steps` among them. Process 0 returns those of all processes, in their
  /// order, and the others none.
  gossip::task<std::vector<ProcessMeasurement>> run(StepEstimate steps);

 private:
  struct Directions {
    bool out = false, in = false;  ///< from the leader to the followers, and back
  };
  struct Rates {
    explicit Rates(std::size_t followers) : sent(followers), received(followers) {}
    std::vector<double> sent, received;  ///< Mbit/s, by follower; 0: without limit
  };

  gossip::task<void> measure_pairs();
  gossip::task<void> measure_nodes();
  gossip::task<std::vector<ProcessMeasurement>> gather();

  gossip::task<LatencyEstimate> lead_echoes(int follower);
  gossip::task<void> follow_echoes(int leader);
  gossip::task<Rates> lead_transfers(const std::vector<int>& followers, Directions directions);
  gossip::task<void> follow_transfers(int leader, Directions directions);

  void send_parts(std::span<const int> to, TransferSize size);
  /// Seconds of each transfer (transfer_seconds()).
  gossip::task<std::vector<double>> receive_parts(const std::vector<int>& from, TransferSize size);
  void send_number(int to, float number);
  gossip::task<float> receive_number(int from);
  /// Ends the run with an error that names `peer`; does not return.
  gossip::task<void> reject(int peer, std::string what);

  const gossip::Scheduler& scheduler_;
  gossip::Node& node_;
  const ProbePlan& plan_;
  std::size_t index_;  ///< of this process
  ProcessMeasurement own_;
};

}  // namespace gossamer::peer
