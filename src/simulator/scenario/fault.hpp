// The faults of a simulated run: their kinds, their fields and their text.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"

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
  interrupt,  ///< the process is asked to stop: it ends once the rounds that its peers have begun
              ///< are done and saved, and is restarted after a while
  interrupt_all,  ///< all processes are asked to stop; a while after the last one has ended, they
                  ///< resume from the newest round that most of them have saved
  arrive,         ///< of an open run: a process starts whose peer takes no part at the start
  leave,          ///< of an open run: the peer of the process leaves for good
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
/// Whether processes are asked to stop: such families have random numbers of their own, and a
/// scenario has one fault of each at most.
bool is_interrupt(FaultKind kind);
/// Whether peers of an open run arrive or leave: no faults of the world, and no family.
bool is_of_open_run(FaultKind kind);
/// Whether the fault's process writes checkpoints: the fault restarts it, or strikes its disk.
bool needs_checkpoints(FaultKind kind);

}  // namespace gossamer::simulator
