#include "simulator/oracle/oracle.hpp"

#include "simulator/oracle/checks.hpp"
#include "simulator/oracle/trace_index.hpp"

namespace gossamer::simulator {

CheckReport check_trace(const Scenario& scenario, const Protocol& protocol, const Trace& trace) {
  Checks checks;
  const TraceIndex index(scenario, protocol, trace, checks);
  check_continuity(index, checks);
  check_deviations(index, checks);
  check_replay(index, checks);
  check_means(index, checks);
  check_async_push_sum(index, checks);
  check_ad_psgd(index, checks);
  check_reinitialisation(index, checks);
  check_joins(index, checks);
  check_liveness(index, checks);
  check_reachability(index, checks);
  check_convergence(index, checks);
  check_recording(index, checks);
  check_final_state(index, checks);
  return std::move(checks.report);
}

}  // namespace gossamer::simulator
