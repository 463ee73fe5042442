#include "simulator/oracle/oracle.hpp"

#include "simulator/oracle/checks.hpp"
#include "simulator/oracle/effective_participants.hpp"
#include "simulator/oracle/trace_index.hpp"

namespace gossamer::simulator {

namespace {

/// `apart`: peers of an open run that were apart took part with others.
void check_all(const Scenario& scenario, const Protocol& protocol, const Trace& trace, bool apart,
               Checks& checks) {
  const TraceIndex index(scenario, protocol, trace, checks);
  check_participants(index, checks);
  check_continuity(index, checks);
  check_deviations(index, checks);
  check_replay(index, checks);
  check_means(index, checks);
  check_async_push_sum(index, checks);
  check_ad_psgd(index, checks);
  if (!apart) check_reinitialisation(index, checks);
  check_joins(index, checks);
  check_liveness(index, checks);
  check_reachability(index, checks);
  if (!apart) check_convergence(index, checks);
  check_recording(index, checks);
  check_final_state(index, checks);
}

}  // namespace

CheckReport check_trace(const Scenario& scenario, const Protocol& protocol, const Trace& trace) {
  Checks checks;
  if (scenario.open) {
    const EffectiveProtocol effective = effective_protocol(scenario, trace);
    check_all(scenario, effective.protocol, trace, effective.apart, checks);
  } else {
    check_all(scenario, protocol, trace, /*apart=*/false, checks);
  }
  return std::move(checks.report);
}

}  // namespace gossamer::simulator
