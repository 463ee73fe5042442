// Checks of the end of a run: that peers are done in time, that queues stayed bounded, and what is
// on the disks.
#include <algorithm>

#include "simulator/oracle/bounds.hpp"
#include "simulator/oracle/checks.hpp"
#include "simulator/oracle/components.hpp"
#include "simulator/oracle/trace_index.hpp"

namespace gossamer::simulator {
namespace {

void check_termination(const TraceIndex& index, Checks& checks) {
  const Trace& trace = index.trace;
  checks.expect(!trace.out_of_time, "termination",
                "the run was not over after {:.3f} s of virtual time and {} events",
                seconds(trace.end), trace.events);
  const Time limit = time_limit(index.scenario, index.protocol) +
                     (trace.resumption ? trace.resumption->at : Time(0));
  for (int a = 0; a < index.incarnations(); ++a) {
    const Incarnation& each = index.incarnation(a);
    if (!each.alive || awaited_round(index, a)) continue;
    checks.expect(each.finished, "termination",
                  "peer {} is in round {}, and nothing is in flight to it", each.peer,
                  each.rounds.empty() ? 0 : each.rounds.back().round);
    checks.expect(!each.finished || each.finished_at <= limit, "termination",
                  "peer {} was done after {:.3f} s, where {:.3f} s are due", each.peer,
                  seconds(each.finished_at), seconds(limit));
  }
}

/// Where peers of an open run only arrive and leave, some peer does the last round: those that
/// leave do not end the run.
void check_last_round(const TraceIndex& index, Checks& checks) {
  const Scenario& scenario = index.scenario;
  if (!scenario.open || scenario.network.loss > 0 ||
      !std::ranges::all_of(scenario.fault_list(), is_of_open_run, &Fault::kind))
    return;
  const auto does_last = [&](const Incarnation& each) {
    return !each.rounds.empty() &&
           each.rounds.back().round + 1 == static_cast<Round>(scenario.rounds);
  };
  checks.expect(std::ranges::any_of(index.trace.incarnations, does_last), "termination",
                "no peer does round {}, the last one of the run", scenario.rounds - 1);
}

/// How often donors give rows to the incarnation. One that is ahead, as under `async`, gives them
/// again before the first ones are taken.
std::uint64_t times_given_rows(const TraceIndex& index, const Incarnation& receiver) {
  const auto entries = std::ranges::count_if(
      index.protocol.participants().changes(),
      [&](const auto& change) { return index.protocol.enters(receiver.peer, change.first); });
  return static_cast<std::uint64_t>(entries) + (receiver.joins ? 1 : 0);
}

/// At a receiver, of each connection: a window of chunks. Of each neighbour in the same process:
/// whole rows, of the rounds that it may be ahead.
std::uint64_t waiting_bound(const TraceIndex& index, const Incarnation& receiver) {
  const Scenario& scenario = index.scenario;
  const Protocol& protocol = index.protocol;
  // One question, one answer and a final message, a row each at most.
  const bool asks = scenario.algorithm == "ad_psgd";
  const auto home = [&scenario](int peer) {
    return scenario.placement[static_cast<std::size_t>(peer)];
  };
  std::uint64_t bound = 0;
  for (const int j : protocol.algorithm->partners(receiver.peer, *protocol.schedule)) {
    if (home(receiver.peer) != home(j)) {
      bound +=
          static_cast<std::uint64_t>(scenario.network.window) *
          (kFrameOverheadBytes + static_cast<std::uint64_t>(scenario.chunk_values) * sizeof(float));
      continue;
    }
    const auto period = static_cast<std::uint64_t>(std::max(protocol.longest_period(), 1));
    const std::uint64_t ahead =
        index.symmetric() ? 2 : static_cast<std::uint64_t>(index.peers()) * period + 1;
    for (Channel c = 0; c < static_cast<Channel>(protocol.rows.size()); ++c) {
      const std::uint64_t given =
          protocol.rows[c].is_transferred() ? times_given_rows(index, receiver) : 0;
      if (index.travels(c) || asks || given > 0)
        bound += std::max(ahead, given) *
                 (index.width(c) * sizeof(float) + kFrameOverheadBytes * index.width(c));
    }
  }
  return bound;
}

/// At a sender, of each connection: one row of each channel, and under `sync` without a codec two:
/// a peer sends its row at once, and then waits, before it mixes, until the half that the mix
/// writes, which is the row of the round before, is no longer leased. Under the other policies a
/// link that still reads a copy is not given another one. A receiver that joins is given
/// its donor's rows once beside these. AD-PSGD's peer has one question or answer in flight, and a
/// final message of one value. Link state updates have no values, and do not count.
std::uint64_t leased_bound(const TraceIndex& index, int receiver) {
  const Protocol& protocol = index.protocol;
  std::uint64_t given = 0;
  for (const Incarnation& each : index.trace.incarnations)
    if (each.peer == receiver) given = std::max(given, times_given_rows(index, each));
  std::uint64_t bound = index.scenario.algorithm == "ad_psgd"
                            ? static_cast<std::uint64_t>(index.scenario.length) + 1
                            : 0;
  for (Channel c = 0; c < static_cast<Channel>(protocol.rows.size()); ++c) {
    const std::size_t values = index.width(c);
    if (index.travels(c))
      bound += index.scenario.codec != "none" ? protocol.codec->words(values)
               : is_lockstep(protocol.policy) ? 2 * values
                                              : values;
    if (protocol.rows[c].is_transferred()) bound += given * values;
  }
  return bound;
}

void check_queues(const TraceIndex& index, Checks& checks) {
  for (const Incarnation& each : index.trace.incarnations) {
    const std::uint64_t bound = waiting_bound(index, each);
    checks.expect(each.most_waiting_bytes <= bound, "queues",
                  "{} bytes waited at peer {}, where at most {} may", each.most_waiting_bytes,
                  each.peer, bound);
  }
  for (const auto& [ends, most] : index.trace.most_lent) {
    const std::uint64_t bound = leased_bound(index, ends.second);
    checks.expect(most <= bound, "queues",
                  "{} values waited at peer {} for peer {}, where at most {} may", most, ends.first,
                  ends.second, bound);
  }
}

bool same_rows(const TraceIndex& index, const std::vector<FloatRow>& rows,
               const SavedState& state) {
  for (std::size_t k = 0; k < index.protocol.rows.size(); ++k)
    if (index.protocol.rows[k].survives && rows[k] != state.rows[k]) return false;
  return true;
}

/// Whether this state was on a disk when the network resumed.
bool resumed_with(const TraceIndex& index, const SavedState& state) {
  const auto is_same = [&](const SavedState& each) {
    return each.round == state.round && each.peer == state.peer &&
           same_rows(index, each.rows, state);
  };
  const auto& resumption = index.trace.resumption;
  return resumption && (std::ranges::any_of(resumption->states, is_same) ||
                        std::ranges::any_of(resumption->kept, is_same));
}

/// Whether the incarnation had this state after its round.
bool had(const TraceIndex& index, const Incarnation& incarnation, const SavedState& state) {
  if (incarnation.peer != state.peer) return false;
  const RoundRecord* last = nullptr;  // it may have left out rounds since
  for (const RoundRecord& record : incarnation.rounds)
    if (record.round < state.round && !record.end.empty()) last = &record;
  return last != nullptr && same_rows(index, last->end, state);
}

void check_durability(const TraceIndex& index, Checks& checks) {
  for (const DiskRecord& disk : index.trace.disks) {
    const Round found = disk.found.empty() ? 0 : disk.found.front().round;
    checks.expect(found >= disk.acknowledged, "durability",
                  "process {} finds round {} on its disk, which had acknowledged round {}",
                  disk.process, found, disk.acknowledged);
    for (const SavedState& state : disk.found) {
      const bool kept = std::ranges::any_of(index.trace.incarnations, [&](const Incarnation& each) {
        return had(index, each, state);
      });
      checks.expect(state.round == found && (kept || resumed_with(index, state)), "durability",
                    "process {} finds rows on its disk that peer {} did not have after {} rounds",
                    disk.process, state.peer, found);
    }
  }
}

}  // namespace

void check_final_state(const TraceIndex& index, Checks& checks) {
  check_termination(index, checks);
  check_last_round(index, checks);
  check_queues(index, checks);
  check_durability(index, checks);
}

}  // namespace gossamer::simulator
