// The trace of a simulated run, for the oracle: what each peer logged, its rows at both ends of
// each round, what its trainer did in between, and what its process found on its disk. The only
// part that the exchange itself supplies are the deviations that it logs.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gossip/exchange/exchange.hpp"
#include "gossip/trainer.hpp"
#include "simulator/names.hpp"

namespace gossamer::simulator {

using FloatRow = std::vector<float>;
inline FloatRow copy_of(std::span<const float> row) { return {row.begin(), row.end()}; }

/// One operation of a peer's trainer: x before and after, and the gradient that it left.
struct TrainRecord {
  TrainOperation operation;
  FloatRow before, gradient, after;
  std::uint64_t kept_steps = 0;  ///< steps before it that the state of the peer's optimizer is of
};

/// One round of one peer.
struct RoundRecord {
  Round round = 0;
  Time began{0};
  std::uint64_t steps = 0;        ///< local steps that the peer counts before it
  bool reinitialised = false;     ///< rows with a conserved sum were reinitialised before it
  std::vector<int> participants;  ///< of an open run: those that the peer knows, ascending
  std::vector<int> reachable;     ///< reachable peers by the peer's own view, ascending
  std::vector<FloatRow> begin;    ///< by row of the algorithm, after reinitialisation
  std::vector<TrainRecord> trained;
  std::vector<FloatRow> end;  ///< empty: the peer's process ended in this round
  std::vector<Deviation> deviations;
};

/// A link that was lost, or restored, when one end was notified.
struct LinkRecord {
  bool restored = false;
  int incarnation = 0, other = 0;  ///< this end and the other one: of Trace::incarnations
  int connection = 0;  ///< number of the connection between the two peers; both ends count alike
  Round round = 0;     ///< of `incarnation` when it was notified
  Time at{0};
  bool parted = false;  ///< it is lost because the other end has left an open run
};

/// What one peer did in one process. A peer whose process is restarted has several incarnations,
/// and so has one that joins anew because it lost the donor with whose rows it was to take part.
struct Incarnation {
  int peer = 0;
  bool joins = false;  ///< a network that runs
  std::vector<RoundRecord> rounds;
  std::vector<Deviation> skipped;  ///< logged for rounds that it left out
  std::vector<Round> recorded;     ///< numbers of rounds after which it wrote a record, in order
  bool waits = false;              ///< for its donor, before it takes part
  bool gave_up = false;            ///< was interrupted, and ended without rows
  bool alive = true;               ///< its process did not end before its last round
  bool finished = false;           ///< it did its last round
  bool stopped = false;            ///< it ended its rounds early, because of an interrupt
  std::optional<Round> left;       ///< of an open run: the first round after it had left for good
  Time finished_at{0};             ///< when it did its last round, or stopped
  std::uint64_t most_waiting_bytes = 0;  ///< the most that had arrived and was not consumed
};

/// A peer's state after a round, as its process saves it.
struct SavedState {
  Round round = 0;
  int peer = 0;
  std::uint64_t steps = 0;  ///< local steps done
  std::vector<std::uint64_t> counters;
  /// By row of the algorithm; a row that does not survive a round may be empty.
  std::vector<FloatRow> rows;
};

/// What a process loaded from its disk.
struct DiskRecord {
  int process = 0;
  Round acknowledged = 0;  ///< the newest round whose states the disk had acknowledged; 0: none
  std::vector<SavedState> found;
};

/// A record of a process's log: a peer after `round` rounds.
struct LogRecord {
  Round round = 0;
  int peer = 0;
  bool gap = false;  ///< records before it may be missing: the peer joined a network that ran
};

/// A process that stopped because of an interrupt.
struct StopRecord {
  int process = 0;
  std::vector<Round> rounds;  ///< that each of its peers had completed which counts after them
  bool complete = true;       ///< none of them ended without rows
  Round acknowledged = 0;     ///< the newest round whose states the disk had acknowledged
};

/// How a network that was stopped as a whole resumes.
struct Resumption {
  Time at{0};
  Round round = 0;                 ///< from which it resumes
  std::vector<int> without;        ///< peers without a state of that round, which join; ascending
  std::vector<SavedState> states;  ///< of the other peers; none in round 0
  std::vector<SavedState> kept;    ///< of other rounds, that disks may keep until they save more
};

struct Trace {
  /// In which the network began, or resumed.
  Round first_round() const { return resumption ? resumption->round : 0; }

  std::optional<Resumption> resumption;  ///< of a network that was stopped before
  std::deque<Incarnation> incarnations;  ///< the first n are the peers' first ones, in their order
  std::vector<LinkRecord> links;         ///< in the order of time
  /// Of processes that save states: at each restart, and at the end.
  std::vector<DiskRecord> disks;
  std::vector<StopRecord> stops;
  /// By process, at the end: its log, beginning with what it wrote before it was restarted.
  std::vector<std::vector<LogRecord>> logs;
  /// By sender and receiver, of different processes: the most values of rows that waited at the
  /// sender.
  std::map<std::pair<int, int>, std::uint64_t> most_lent;
  /// Losses and restorations of links, and the peers' messages about them, a line each.
  std::vector<std::string> event_log;
  /// Errors that a process reported, and undamaged chunks that it refused.
  std::vector<std::string> errors;
  Time end{0};
  std::uint64_t events = 0;
  bool out_of_time = false;  ///< virtual time or events ran out while work was left
  std::uint64_t hash = 0;    ///< of chunks delivered, rounds done and final rows
};

}  // namespace gossamer::simulator
