// The all-gather at the start of a run: what each process knows spreads to every other, step by
// step from partner to partner, before the first round.
#pragma once

#include <optional>
#include <string>

#include "net/network_state.hpp"
#include "net/shutdown.hpp"

namespace gossamer::net {

/// In each step the two ends of every edge exchange a contribution; a process sends its next one
/// when it has merged one of every partner. So a partner is at most one step ahead, and two of its
/// contributions wait at most. Thread: the scheduler's.
class AllGatherPhase {
 public:
  AllGatherPhase(NetworkState& state, Shutdown& shutdown) : state_(state), shutdown_(shutdown) {}

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
  void send();
  bool merge_step();

  NetworkState& state_;
  Shutdown& shutdown_;
  std::optional<AllGather> gather_;
  int steps_done_ = 0;
};

}  // namespace gossamer::net
