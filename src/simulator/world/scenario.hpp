// What one run of the simulator is: peers, processes, links, policy, algorithm, and what goes wrong
// when. A seed expands to one; its text can be read again, so that a scenario that was made smaller
// can be repeated.
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
#include "topology/mixing_matrix.hpp"

namespace gossamer::gossip::sim {

enum class FaultKind {
  crash,    ///< the process ends; its connections are reset, and what of its chunks still comes
            ///< differs from link to link
  vanish,   ///< the machine ends: nobody is told, there is silence
  restart,  ///< the process crashes, and is started again a while later, with an old state of its
            ///< peers
  reboot,   ///< the same, and it vanishes
  pause,    ///< the process does nothing for a while, and what comes waits
  slow,     ///< from the start, the process's local steps take `amount` times as long
  delay,    ///< for a while, chunks between two processes come `amount` seconds later
  stall,    ///< for a while nothing passes from a process to another one, and what is sent waits
  clog,     ///< for a while, each way between two processes is shut and opened by turns, for about
            ///< `amount` seconds each time
  partition,  ///< for a while nothing passes between the processes up to this one and those beyond
  deafness,   ///< the same, but what those beyond send passes
  cut,        ///< nothing passes between two processes any more
  corrupt,  ///< the next frame of a connection from a process to another one is damaged, which its
            ///< receiver sees
  close,    ///< a process's connection to another one ends in the middle of a frame
  slow_reader,   ///< for a while the process takes `amount` bytes a second from its connections
  not_finite,    ///< the next row that a process sends to another one begins with a NaN, as of a
                 ///< sender that does not look
  clock,         ///< the clock of a process's machine leaps ahead by `amount` seconds
  failed_write,  ///< of the calls that the process's checkpoints ask of its disk, the one after
                 ///< `amount` more fails
  torn_write,    ///< the same, and it writes half
  killed_write,  ///< for a while, the same, and the process ends there; it is started again at the
                 ///< end
};

struct Fault {
  FaultKind kind = FaultKind::crash;
  double at = 0;     ///< seconds
  double lasts = 0;  ///< seconds; of those that last a while
  int process = 0;
  int other = 0;  ///< a process; of those that concern two
  double amount = 0;
  bool operator==(const Fault&) const = default;
};

/// What a kind of fault is called and which of a fault's fields it uses.
struct FaultForm {
  FaultKind kind;
  const char* name;
  bool at, lasts, other, amount;
};
const std::vector<FaultForm>& fault_forms();
const FaultForm& form_of(FaultKind kind);
/// "stall process=1 other=2 at=0.5 lasts=0.25"
std::string to_string(const Fault& fault);
/// The error (invalid) says which word is not understood.
Result<Fault> parse_fault(const std::string& text);

struct Scenario {
  std::uint64_t seed =
      0;  ///< keys jitter, step times, start rows, optima and what faults leave to chance
  std::string topology = "ring";
  bool lazy = false;
  int peers = 4;
  std::vector<int> homes;  ///< by peer: its process; processes are numbered from 0 without a gap
  std::string policy = "sync";
  int staleness = 4;
  std::string algorithm =
      "dpsgd";                 ///< one that bears losses; or ad_psgd, whose run ends with the first
  std::string order = "atc";   ///< of those that have one
  std::string codec = "none";  ///< that rows are mixed through; under sync, of algorithms whose
                               ///< rows the oracle has to the bit
  int local_steps = 1;         ///< of those that take several
  int rounds = 100;
  double rate = 0.1;
  int length = 8;  ///< values of a row
  int chunk_values = 8;
  int window = 2;  ///< chunks that a receiver holds of a connection
  int buffer_chunks =
      2;  ///< chunks on their way on a connection; what is sent beyond waits at its sender
  double step_ms = 5, step_spread = 0;
  double latency_ms = 5, jitter_ms = 0;
  double loss = 0;              ///< part of the packets that do not arrive, and are sent again
  double duplication = 0;       ///< part of the packets that travel twice
  double bandwidth_mbit_s = 0;  ///< of a connection; 0: without limit
  double silence = 2;           ///< seconds
  double call_again =
      1;  ///< seconds: the longest pause before a connection that is gone is called again
  int checkpoint_every =
      10;  ///< rounds after which a process that a fault needs it of writes a checkpoint
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
/// Reads and checks; the error (invalid) names the field.
Result<Scenario> scenario_of(const ParameterValues& values);

/// What a scenario is made of, built: the same for all its processes.
struct Parts {
  std::unique_ptr<topology::MixingSchedule> schedule;
  std::unique_ptr<Algorithm> algorithm;
  std::vector<RowSpec> rows;
  std::unique_ptr<Codec> codec;
  Policy policy = Policy::sync;
};
/// The error (invalid) says what does not go together.
Result<Parts> build(const Scenario& scenario);

}  // namespace gossamer::gossip::sim
