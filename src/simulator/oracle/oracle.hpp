// The oracle: judges a trace in double, knowing W, the start rows, what peers logged and what their
// trainers did, which links they were told are lost or back, and nothing of the protocol. What it
// holds a run to:
//
//   replay     each mix of each peer in each round is what the logged W makes of the rows that went
//   in: within
//              4 (k + 4) 2⁻²⁴ M for k neighbours and values up to M; and what comes between the
//              mixes is the algorithm's
//   log        what deviates from W is logged, and only where it may: sync lacks lost peers alone,
//   stale is never staler than
//              it says, rounds that are used never go back
//   edges      under sync and deadline both ends agree whether, and how much of, a row counted, but
//   for the rounds in which
//              the link broke
//   mean       under sync and deadline, with a symmetric W, the sum over the peers keeps what it
//   had, but for edges that counted at
//              one end: by W's formula to 1e-12, and in the rows themselves to what float32 may
//              round off
//   drift      an edge counts at one end in the one round in which the other end loses it; over all
//   rounds these move the mean
//              by no more than their weights times the differences of the rows
//   totals     asynchronous push-sum's sums and weights, what is under way included, and the sum of
//   AD-PSGD's models change by the
//              peers' steps alone; where a link was lost, each peer's own account says what went
//              with it
//   restarts   after a loss, rows with a conserved sum begin again at the round that is due, at all
//   who are left together sums       in the end, conserved sums of each part that is left are what
//   they are worth healing    after the last fault every link that is there counts, under sync and
//   stale reuse      and under async every round uses of it what was sent since; under deadline
//   exchanges do count consensus  and each part comes together at the rate of its own gap, descent
//   the mean of D-PSGD's rows goes to the part's optimum at the rate of its step size, optimum and
//   gradient tracking, D² and EXTRA end there progress   whoever lives does all its rounds within a
//   bound of virtual time queues     what has come and waits at a peer stays below a bound, and so
//   does what a peer has lent to each connection disk       what a process finds on its disk is
//   what its peers had after some round, and no older than was said to be there faults     nobody
//   complains of anybody
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "simulator/world/scenario.hpp"
#include "simulator/world/trace.hpp"

namespace gossamer::gossip::sim {

struct Verdict {
  std::vector<std::string> violations;           ///< whole sentences, the first few of each kind
  std::map<std::string, std::uint64_t> checked;  ///< how often each property was looked at
  double drift = 0;                              ///< of the mean, over all rounds: the norm
  double rounding = 0;  ///< the largest part of the bound on rounding that was taken up
  std::uint64_t one_sided = 0;
  bool ok() const { return violations.empty(); }
};

/// Virtual time by which everybody has done all rounds: those of the slowest, and what the faults
/// hold up.
Time time_limit(const Scenario& scenario, const Parts& parts);
/// By which nothing is left to happen: timers of silences and calls, and faults that come when all
/// rounds are done.
Time run_limit(const Scenario& scenario, const Parts& parts);

/// Within which a link that is there again counts, and a peer that joins is given rows, where
/// nothing else goes wrong.
Time patience_of(const Scenario& scenario, const Parts& parts);
/// When the last of the scenario's faults is over; those that stay are from when they are there.
Time faults_end(const Scenario& scenario);

Verdict judge(const Scenario& scenario, const Parts& parts, const Trace& trace);

}  // namespace gossamer::gossip::sim
