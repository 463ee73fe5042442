// The all-gather at the start of a run: what each process knows spreads to every other, step by
// step from partner to partner, before the first round.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "net/run/network_state.hpp"
#include "net/run/shutdown.hpp"

namespace gossamer::net {

/// In each step the two ends of every edge exchange a contribution; a process sends its next one
/// when it has merged one of every partner. So a partner is at most one step ahead, and two of its
/// contributions wait at most. Thread: the scheduler's.
class AllGatherPhase {
 public:
  AllGatherPhase(NetworkState& state, Shutdown& shutdown) : state_(state), shutdown_(shutdown) {}
  ~AllGatherPhase() { state_.scheduler.cancel(deadline_); }
  AllGatherPhase(const AllGatherPhase&) = delete;
  AllGatherPhase& operator=(const AllGatherPhase&) = delete;

  /// The run ends with join_timeout and the names of the partners whose contributions are missing
  /// if the all-gather is not complete within net.join_timeout.
  void begin(AllGather gather);
  bool begun() const { return gather_.has_value(); }
  /// All steps are done, or this process is a latecomer, which takes part in none.
  bool complete() const { return state_.run.late || (gather_ && steps_done_ == gather_->steps); }

  /// SessionOwner::on_contribution.
  Status on_contribution(Session& session, std::string contribution);
  /// Merges and sends as long as the next contribution of every partner is there. A partner that
  /// said goodbye before its contribution ends the run.
  void advance();

 private:
  /// Contributions of the other end of an edge that are not merged yet: two at most.
  struct Unmerged {
    std::uint64_t session = 0;  ///< Edge::sessions: those of a process that is gone do not count
    std::deque<std::string> contributions;
  };

  /// Those of the edge's session.
  std::deque<std::string>& unmerged_of(const Edge& edge);
  bool step_is_here();
  void send();
  bool merge_step();
  void on_deadline();

  NetworkState& state_;
  Shutdown& shutdown_;
  std::optional<AllGather> gather_;
  int steps_done_ = 0;
  std::map<const Edge*, Unmerged> unmerged_;
  gossip::Scheduler::TimerId deadline_;
};

}  // namespace gossamer::net
