// One scenario from beginning to end: run twice, judged, and where nothing was lost held against
// the same network in a single process; and made smaller where it fails.
#pragma once

#include <functional>

#include "simulator/oracle/oracle.hpp"
#include "simulator/world/scenario.hpp"
#include "simulator/world/storage.hpp"
#include "simulator/world/trace.hpp"

namespace gossamer::gossip::sim {

struct Outcome {
  Verdict verdict;
  std::uint64_t hash = 0;  ///< of the trace
  double virtual_seconds = 0;
  std::uint64_t events = 0;
  std::vector<std::string> story;  ///< Trace::story
  std::size_t losses = 0;          ///< ends that were told of a loss,
  std::size_t returns = 0;         ///< and that a link is back
  std::size_t joins = 0;           ///< peers that joined a network that ran
};

/// The scenario is one that build() takes. `storage` makes what a run's processes keep checkpoints
/// in, of each run anew; empty: it is perfect.
Outcome simulate(const Scenario& scenario, const MakeStorage& storage = {});

/// Adds to the verdict what only further runs show: repeats, of the same scenario's second trace;
/// and bits, of the same network's in one process, where nobody was lost.
void judge_again(const Scenario& scenario, const Parts& parts, const Trace& trace,
                 const Trace& again, Verdict& verdict);

/// The trace of one run.
Trace run_scenario(const Scenario& scenario, const Parts& parts, const MakeStorage& storage = {});

/// A smaller scenario that `fails` too: fewer faults, rounds and peers, simpler links, as long as
/// it does. At most `runs` calls.
Scenario shrink(Scenario scenario, const std::function<bool(const Scenario&)>& fails,
                int runs = 400);

}  // namespace gossamer::gossip::sim
