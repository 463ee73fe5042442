// One scenario from beginning to end: run twice, checked by the oracle, and, where nothing was
// lost, compared with the same network in a single process.
#pragma once

#include "simulator/oracle/oracle.hpp"
#include "simulator/scenario/scenario.hpp"
#include "simulator/storage/storage.hpp"
#include "simulator/world/trace.hpp"

namespace gossamer::simulator {

struct Outcome {
  CheckReport report;
  std::uint64_t hash = 0;  ///< of the trace
  double virtual_seconds = 0;
  std::uint64_t events = 0;
  std::vector<std::string> event_log;  ///< Trace::event_log
  std::size_t losses = 0;              ///< ends of links that detected a loss
  std::size_t restorations = 0;        ///< ends of links that were restored
  std::size_t joins = 0;               ///< peers that joined a network that ran
  std::size_t stops = 0;               ///< processes that stopped because of an interrupt
  std::size_t resumptions = 0;         ///< of the network after a stop of all processes
};

/// The scenario is one that build_protocol() accepts. `storage` makes the disks of a run's
/// processes, for each run anew; empty: they are perfect.
Outcome simulate(const Scenario& scenario, const MakeStorage& storage = {});

/// Adds to the report the properties that take a further run: `determinism`, of the second trace of
/// the scenario; and `bits`, of the same network in one process, where nothing was lost.
void check_further_runs(const Scenario& scenario, const Protocol& protocol,
                        const std::vector<Trace>& parts, const std::vector<Trace>& second,
                        CheckReport& report);

/// The traces of one run: of a network that is stopped as a whole and resumes, one of each part.
std::vector<Trace> run_parts(const Scenario& scenario, const Protocol& protocol,
                             const MakeStorage& storage = {});
/// The last one.
Trace run_scenario(const Scenario& scenario, const Protocol& protocol,
                   const MakeStorage& storage = {});

}  // namespace gossamer::simulator
