// Joining: the time from start() until the pairs of this process are connected. It includes the
// grace period of a latecomer, the report of missing peers, and the moment from which chunks are
// delivered.
//
// A process that learns from a partner that the network has begun its rounds is a latecomer. It
// begins with the partners that connect within the grace period, and forwards the news to the
// partners to which it had said otherwise.
#pragma once

#include <string>
#include <vector>

#include "net/run/all_gather_phase.hpp"
#include "net/run/network_state.hpp"
#include "net/run/shutdown.hpp"

namespace gossamer::net {

/// Thread: the scheduler's.
class JoinPhase {
 public:
  JoinPhase(NetworkState& state, AllGatherPhase& all_gather, Shutdown& shutdown)
      : state_(state), all_gather_(all_gather), shutdown_(shutdown) {}
  ~JoinPhase();
  JoinPhase(const JoinPhase&) = delete;
  JoinPhase& operator=(const JoinPhase&) = delete;

  /// Network::join, once the connections are being made.
  Status wait();
  /// An edge has a connection: ends the phase if all have, or enough for a latecomer.
  void check();
  /// A partner says that its network has begun: this process is a latecomer, unless it has begun
  /// too.
  void on_running();

  /// Everything that precedes the first round is done: the layers above learn of lost and restored
  /// links by callbacks. What happens to the links of a latecomer before release_chunks(), they
  /// learn by connected().
  bool has_begun() const;
  /// What the hellos of this process say: the network has begun its rounds.
  bool running() const { return state_.run.late || has_begun(); }

  /// Chunks wait unread until release_chunks(), as they do before its first call.
  void hold_chunks();
  /// Chunks are delivered in the scheduler's next turns, once all pairs are connected.
  void release_chunks();
  bool chunks_released() const { return released_; }

 private:
  std::vector<std::string> missing() const;
  void report_missing();
  Status outcome(bool timed_out);
  void schedule_release();

  NetworkState& state_;
  AllGatherPhase& all_gather_;
  Shutdown& shutdown_;
  bool ready_ = false;       ///< the layers above are, since release_chunks()
  bool released_ = false;    ///< chunks are delivered
  bool grace_over_ = false;  ///< of a latecomer
  gossip::Scheduler::TimerId report_timer_, release_timer_, grace_timer_;
};

}  // namespace gossamer::net
