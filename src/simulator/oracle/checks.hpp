// The oracle's checks. Each function checks the properties of one concern on an indexed trace, and
// lies in the file that its comment names.
#pragma once

#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>

#include "simulator/oracle/oracle.hpp"

namespace gossamer::simulator {

class TraceIndex;

/// Collects what checks find.
class Checks {
 public:
  /// Counts a look at `property`; where it does not hold, adds the sentence, unless there are
  /// enough of this property.
  template <class... Arguments>
  void expect(bool holds, const char* property, fmt::format_string<Arguments...> sentence,
              Arguments&&... arguments) {
    ++report.checked[property];
    if (holds || ++violations_[property] > kMostSentences) return;
    report.violations.push_back(fmt::format(
        "{}: {}", property, fmt::format(sentence, std::forward<Arguments>(arguments)...)));
  }

  CheckReport report;

 private:
  static constexpr std::size_t kMostSentences = 3;  // of one property

  std::map<std::string, std::size_t> violations_;
};

/// `errors`: no process reported an error. `continuity`: rows stay as they are between two rounds.
/// (continuity.cpp)
void check_continuity(const TraceIndex& index, Checks& checks);
/// `participants`: of an open run, a peer does rounds in which it takes part, and mixes rows of
/// peers that know the same participants. (participants.cpp)
void check_participants(const TraceIndex& index, Checks& checks);
/// `log`: deviations from W are logged, and occur only where they may. `agreement`: both ends of an
/// edge agree on how much of a row counted. (deviations.cpp)
void check_deviations(const TraceIndex& index, Checks& checks);
/// `replay`: each mix is what the logged W makes of the rows that went in. (replay.cpp)
void check_replay(const TraceIndex& index, Checks& checks);
/// `mean`, `drift`: the sum over the peers, and the mean over all rounds. (means.cpp)
void check_means(const TraceIndex& index, Checks& checks);
/// `replay`, `totals` of asynchronous push-sum and AD-PSGD. (async_checks.cpp)
void check_async_push_sum(const TraceIndex& index, Checks& checks);
void check_ad_psgd(const TraceIndex& index, Checks& checks);
/// `reinitialisation`: rows with a conserved sum are reinitialised after a loss.
/// (reinitialisation.cpp)
void check_reinitialisation(const TraceIndex& index, Checks& checks);
/// `reachability` of each component that is left, and `termination` of peers that join.
/// (reachability.cpp)
void check_joins(const TraceIndex& index, Checks& checks);
void check_reachability(const TraceIndex& index, Checks& checks);
/// `liveness`, `waiting`, `freshness`: links that are there are used again. (liveness.cpp)
void check_liveness(const TraceIndex& index, Checks& checks);
/// `sums`, `consensus`, `descent`, `optimum` of each component that is left. (convergence.cpp)
void check_convergence(const TraceIndex& index, Checks& checks);
/// `recording`: what processes logged, and where they stopped. (recording.cpp)
void check_recording(const TraceIndex& index, Checks& checks);
/// `termination`, `queues`, `durability`. (final_state.cpp)
void check_final_state(const TraceIndex& index, Checks& checks);

}  // namespace gossamer::simulator
