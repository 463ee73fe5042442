// A scenario: peers, processes, links, policy, algorithm, and the faults with their times. A seed
// expands to one scenario (generator.hpp). Its text can be read back, so that a scenario that was
// shrunk can be repeated.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/parameter.hpp"
#include "gossip/algorithm.hpp"
#include "gossip/codec.hpp"
#include "gossip/exchange/exchange.hpp"
#include "simulator/names.hpp"
#include "simulator/scenario/fault.hpp"
#include "topology/mixing_matrix.hpp"

namespace gossamer::simulator {

/// The connections of a scenario, and what they are like.
struct NetworkConditions {
  int window = 2;         ///< chunks of a connection that its receiver holds
  int buffer_chunks = 2;  ///< chunks in flight on a connection; further ones wait at their sender
  double latency_ms = 5, jitter_ms = 0;
  double loss = 0;              ///< probability that a packet is lost; it is then sent again
  double duplication = 0;       ///< probability that a packet travels twice
  double bandwidth_mbit_s = 0;  ///< of a connection; 0: without limit
  double failure_timeout = 2;   ///< seconds without a byte after which a link is lost
  double reconnect_delay = 1;  ///< seconds: the longest pause before a lost connection is redialled
};

/// The local steps of a round.
struct LocalSteps {
  std::string order = "atc";  ///< of algorithms that have an order
  int local_steps = 1;        ///< of algorithms that take several
  double rate = 0.1;
  double step_ms = 5, step_spread = 0;
};

struct Scenario {
  /// Keys jitter, step times, start rows, optima and all random choices of faults.
  std::uint64_t seed = 0;
  std::string topology = "ring";
  bool lazy = false;
  int peers = 4;
  /// Which peers take part in which rounds (topology::Participants::parse); empty: all in all.
  std::vector<std::string> participants;
  /// Participants join and leave as the faults `arrive` and `leave` say; `participants` has at most
  /// the first. Each process has one peer.
  bool open = false;
  std::vector<int> placement;  ///< by peer: its process; processes are numbered 0, 1, … without gap
  std::string policy = "sync";
  int staleness = 4;
  std::string algorithm = "dpsgd";  ///< one that tolerates loss; or ad_psgd, whose run then ends
  /// What rows are mixed through. Only under sync, and with algorithms of which the oracle knows
  /// every row bit by bit.
  std::string codec = "none";
  LocalSteps steps;
  int rounds = 100;
  int length = 8;  ///< values of a row
  int chunk_values = 8;
  NetworkConditions network;
  int checkpoint_every = 10;  ///< rounds between two checkpoints of a process; only processes that
                              ///< a fault restarts, or whose disk it strikes, write any
  std::vector<std::string> faults;  ///< to_string of each

  int processes() const;
  std::vector<Fault> fault_list() const;
};

const std::vector<std::string>& codec_names();

/// The names, ranges and units of its fields.
const ParameterSet<Scenario>& scenario_parameters();
/// TOML: a line for each field.
std::string to_text(const Scenario& scenario);
/// Reads and validates; the error (invalid) names the field.
Result<Scenario> scenario_of(const ParameterValues& values);

/// What all processes of a scenario share: the schedule of W, the algorithm with its rows, the
/// codec and the policy.
struct Protocol {
  std::unique_ptr<topology::MixingSchedule> schedule;
  std::unique_ptr<Algorithm> algorithm;
  std::vector<RowSpec> rows;
  std::unique_ptr<Codec> codec;
  Policy policy = Policy::sync;

  const topology::Participants& participants() const { return schedule->participants(); }
  /// Of an open run: the peers whose processes do not run at the start.
  std::vector<int> absent_at_start() const;
  /// Whether the peer takes part in round t, and did not before: it takes the rows of a donor.
  bool enters(int peer, Round t) const {
    return participants().takes_part(peer, t) && !participants().counts_after(peer, t);
  }
  /// The rounds in which two neighbours exchange rows at least once, with any participants; 0 where
  /// rounds are drawn.
  int longest_period() const { return schedule->longest_period(); }
};
/// Whether every W is symmetric; of a random sequence, that of the first round.
bool is_symmetric(const topology::MixingSchedule& schedule);

/// The error (invalid) says what does not go together.
Result<Protocol> build_protocol(const Scenario& scenario);

}  // namespace gossamer::simulator
