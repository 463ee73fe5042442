// Checks of what processes recorded in their logs, and of where they stopped when they were asked
// to.
#include <algorithm>
#include <map>

#include "simulator/oracle/checks.hpp"
#include "simulator/oracle/trace_index.hpp"

namespace gossamer::simulator {
namespace {

/// The first number of rounds, from `rounds` on, after which the peer counts.
Round counted_from(const TraceIndex& index, int peer, Round rounds) {
  while (rounds <= index.rounds() && !index.protocol.participants().counts_after(peer, rounds))
    ++rounds;
  return rounds;
}

/// A peer records each number of completed rounds after which it counts once, from the one that it
/// begins with.
void check_incarnation(const TraceIndex& index, int a, Checks& checks) {
  const Incarnation& peer = index.incarnation(a);
  if (peer.rounds.empty() || peer.recorded.empty()) return;
  const Round first = peer.joins ? peer.rounds.front().round : index.trace.first_round();
  Round due = counted_from(index, peer.peer, first);
  // Peers that were apart may have taken it for a participant before it was one here.
  if (index.scenario.open && peer.joins && peer.recorded.front() == first + 1) due = first + 1;
  for (const Round recorded : peer.recorded) {
    checks.expect(recorded == due, "recording",
                  "peer {} recorded round {}, where the record of round {} was due", peer.peer,
                  recorded, due);
    due = counted_from(index, peer.peer, recorded + 1);
  }
  checks.expect(
      !peer.finished || due > std::min(peer.left.value_or(index.rounds()), index.rounds()),
      "recording", "peer {} finished, and the record of round {} is missing", peer.peer, due);
}

/// In the log of a process, no record of a peer is repeated, and none is missing but those of
/// rounds before it joined a network that ran.
void check_log(const TraceIndex& index, const std::vector<LogRecord>& log, Checks& checks) {
  std::map<int, Round> due;
  for (const LogRecord& record : log) {
    const Round next = counted_from(index, record.peer, due[record.peer]);
    checks.expect(record.gap ? record.round >= next : record.round == next, "recording",
                  "the log has a record of peer {} after round {}, where that of round {} is due",
                  record.peer, record.round, next);
    due[record.peer] = record.round + 1;
  }
}

/// Whether a fault may keep the process from saving a state, or end it on the way.
bool disk_may_fail(const TraceIndex& index, int process) {
  return std::ranges::any_of(index.scenario.fault_list(), [process](const Fault& fault) {
    using enum FaultKind;
    return fault.process == process &&
           (fault.kind == failed_write || fault.kind == torn_write || fault.kind == killed_write);
  });
}

/// A peer that knows of a change of links saves no state until the rows with a conserved sum have
/// been reinitialised.
bool sums_may_be_broken(const TraceIndex& index) {
  return !index.trace.links.empty() &&
         std::ranges::any_of(index.protocol.rows, &RowSpec::conserved_sum);
}

/// All peers of a process stop after the same round, and it is saved.
void check_stop(const TraceIndex& index, const StopRecord& stop, Checks& checks) {
  if (stop.rounds.empty()) return;
  const Round round = stop.rounds.front();
  checks.expect(std::ranges::count(stop.rounds, round) == std::ssize(stop.rounds), "recording",
                "the peers of process {} stopped after rounds that differ", stop.process);
  checks.expect(stop.acknowledged == round || !stop.complete ||
                    disk_may_fail(index, stop.process) || sums_may_be_broken(index),
                "recording", "process {} stopped after round {}, and had saved round {}",
                stop.process, round, stop.acknowledged);
}

}  // namespace

void check_recording(const TraceIndex& index, Checks& checks) {
  for (int a = 0; a < index.incarnations(); ++a) check_incarnation(index, a, checks);
  for (const std::vector<LogRecord>& log : index.trace.logs) check_log(index, log, checks);
  for (const StopRecord& stop : index.trace.stops) check_stop(index, stop, checks);
}

}  // namespace gossamer::simulator
