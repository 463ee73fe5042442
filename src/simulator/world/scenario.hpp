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
#include "topology/mixing_matrix.hpp"

namespace gossamer::simulator {

enum class FaultKind {
  crash,    ///< the process ends; its connections are reset, and on each link another part of its
            ///< last chunks still arrives
  vanish,   ///< the machine ends: no reset is sent, and its connections fall silent
  restart,  ///< the process crashes and is restarted later, with an old state of its peers
  reboot,   ///< the machine vanishes, and the process is restarted later
  pause,    ///< the process does nothing for a while, and what arrives waits
  slow,     ///< from the start, the process's local steps take `amount` times as long
  delay,    ///< for a while, chunks between two processes arrive `amount` seconds later
  stall,    ///< for a while nothing passes from one process to another; what is sent waits
  clog,  ///< for a while, each direction between two processes is blocked and unblocked by turns,
         ///< for about `amount` seconds each time
  partition,          ///< for a while nothing passes between the processes up to this one and the
                      ///< processes beyond
  one_way_partition,  ///< the same, but what the processes beyond send passes
  cut,                ///< from then on nothing passes between two processes
  corrupt,  ///< the next frame from one process to another is damaged, and its receiver detects it
  close,    ///< a process resets its connection to another one in the middle of a frame
  slow_reader,   ///< for a while the process takes `amount` bytes a second from its connections
  not_finite,    ///< the next row from one process to another begins with a NaN, as from a sender
                 ///< that does not validate its rows
  clock,         ///< the clock of the process's machine jumps ahead by `amount` seconds
  failed_write,  ///< of the calls that the process's checkpoints make to its disk, the one after
                 ///< `amount` more fails
  torn_write,    ///< the same, and it writes half
  killed_write,  ///< the same, and the process ends at that call; it is restarted at the end
};

struct Fault {
  FaultKind kind = FaultKind::crash;
  double at = 0;     ///< seconds
  double lasts = 0;  ///< seconds; of kinds that end
  int process = 0;
  int other = 0;  ///< a process; of kinds that concern two
  double amount = 0;
  bool operator==(const Fault&) const = default;
};

/// The name of a kind of fault, and which of a fault's fields it uses.
struct FaultSpec {
  FaultKind kind;
  const char* name;
  bool at, lasts, other, amount;
};
const std::vector<FaultSpec>& fault_specs();
const FaultSpec& spec_of(FaultKind kind);
/// "stall process=1 other=2 at=0.5 lasts=0.25"
std::string to_string(const Fault& fault);
/// The error (invalid) names the word that is not understood.
Result<Fault> parse_fault(const std::string& text);

struct Scenario {
  /// Keys jitter, step times, start rows, optima and all random choices of faults.
  std::uint64_t seed = 0;
  std::string topology = "ring";
  bool lazy = false;
  int peers = 4;
  std::vector<int> placement;  ///< by peer: its process; processes are numbered 0, 1, … without gap
  std::string policy = "sync";
  int staleness = 4;
  std::string algorithm = "dpsgd";  ///< one that tolerates loss; or ad_psgd, whose run then ends
  std::string order = "atc";        ///< of algorithms that have an order
  /// What rows are mixed through. Only under sync, and with algorithms of which the oracle knows
  /// every row bit by bit.
  std::string codec = "none";
  int local_steps = 1;  ///< of algorithms that take several
  int rounds = 100;
  double rate = 0.1;
  int length = 8;  ///< values of a row
  int chunk_values = 8;
  int window = 2;         ///< chunks of a connection that its receiver holds
  int buffer_chunks = 2;  ///< chunks in flight on a connection; further ones wait at their sender
  double step_ms = 5, step_spread = 0;
  double latency_ms = 5, jitter_ms = 0;
  double loss = 0;              ///< probability that a packet is lost; it is then sent again
  double duplication = 0;       ///< probability that a packet travels twice
  double bandwidth_mbit_s = 0;  ///< of a connection; 0: without limit
  double failure_timeout = 2;   ///< seconds without a byte after which a link is lost
  double reconnect_delay = 1;  ///< seconds: the longest pause before a lost connection is redialled
  int checkpoint_every = 10;   ///< rounds between two checkpoints of a process; only processes that
                               ///< a fault restarts, or whose disk it strikes, write any
  std::vector<std::string> faults;  ///< to_string of each

  int processes() const;
  std::vector<Fault> fault_list() const;
};

const std::vector<std::string>& codec_names();

/// The names, ranges and units of its fields.
const ParameterSet<Scenario>& scenario_parameters();
ParameterValues values_of(const Scenario& scenario);
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
};
/// The error (invalid) says what does not go together.
Result<Protocol> build_protocol(const Scenario& scenario);

}  // namespace gossamer::simulator
