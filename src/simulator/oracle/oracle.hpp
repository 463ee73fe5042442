// The oracle: checks a trace in double precision. It knows W, the start rows, what peers logged,
// what their trainers did, and which links they were notified of; it knows nothing of the protocol.
//
//   property         what holds
//   replay           each mix of each peer in each round is what the logged W makes of the rows
//   that
//                    went in: within 4 (k + 4) 2⁻²⁴ M for k neighbours and values up to M. What
//                    lies between the mixes of a round is the algorithm's.
//   log              deviations from W are logged, and occur only where they may: under sync only
//                    rows of lost peers are missing, under stale rows are within the bound, and the
//                    rounds that are used never go back
//   participants     in an open run a peer does rounds in which it takes part, and mixes rows of
//                    peers that know the same participants
//   continuity       rows stay as they are from one round to the next, or are reinitialised; a peer
//                    that joins has its donor's rows and count of steps, and a new optimizer
//   agreement        under sync and deadline both ends of an edge agree how much of a row counted,
//                    but for the round in which the link broke
//   mean             under sync and deadline, with a symmetric W, the sum over the peers is
//   conserved,
//                    but for edges that counted at one end: by W's formula to 1e-12, and in the
//                    rows to what float32 may round off
//   drift            an edge counts at one end only in the one round in which the other end loses
//                    it; over all rounds these edges move the mean by no more than their weights
//                    times the differences of the rows
//   totals           asynchronous push-sum's sums and weights, with what is in flight, and the sum
//   of
//                    AD-PSGD's models change by the peers' steps alone; where a link was lost, each
//                    peer's own account says what was lost with it
//   reinitialisation after a loss, rows with a conserved sum are reinitialised at the round that is
//                    due, at all peers of a component together
//   sums             at the end, the conserved sums of each component have their values
//   liveness         after the last fault every link that is up counts, under sync and stale
//   waiting          and no peer waits in a round for longer than a part that is behind takes to
//                    catch up,
//   freshness        and under async every round uses rows that were sent since; under deadline
//                    exchanges do count
//   reachability     after the last fault every peer's view of the reachable peers is right
//   consensus        and each component converges at the rate of its own spectral gap,
//   descent          the mean of D-PSGD's rows approaches the component's optimum at the rate of
//   its
//                    step size,
//   optimum          and gradient tracking, D² and EXTRA end there
//   termination      a peer that lives does all its rounds within a bound of virtual time; where
//                    peers of an open run only arrive and leave, some peer does the last round
//   queues           the bytes that wait at a peer, and the values that a peer has leased to a
//                    connection, stay below a bound
//   durability       what a process finds on its disk is what its peers had after some round, and
//   no
//                    older than what the disk had acknowledged
//   recording        the log of a process has a record of each peer for each number of rounds that
//                    it completed, once each, however often the process was stopped and resumed;
//                    the peers of a process that is asked to stop do so after one round, which is
//                    saved
//   errors           no process reports an error, or refuses an undamaged chunk
//
// Two further properties take a second run (simulation.hpp): `determinism` and `bits`.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "simulator/scenario/scenario.hpp"
#include "simulator/world/trace.hpp"

namespace gossamer::simulator {

struct CheckReport {
  std::vector<std::string> violations;  ///< whole sentences, the first few of each property
  std::map<std::string, std::uint64_t> checked;  ///< by property: how often it was looked at
  double drift = 0;                              ///< of the mean, over all rounds: the norm
  double rounding = 0;          ///< the largest rounding error, as a fraction of its bound
  std::uint64_t one_sided = 0;  ///< edges that counted at one end only
  bool ok() const { return violations.empty(); }
};

CheckReport check_trace(const Scenario& scenario, const Protocol& protocol, const Trace& trace);

}  // namespace gossamer::simulator
