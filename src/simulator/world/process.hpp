// A process of the simulated world: the protocol as a program runs it, for the peers that it hosts.
// It has its own scheduler, exchange, rows and coroutines, so it can end at any moment without the
// knowledge of other processes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "simulator/world/round_recorder.hpp"
#include "simulator/world/runtime.hpp"

namespace gossamer::simulator {

class Process {
 public:
  Process(World& world, int number);
  ~Process();

  int number() const { return number_; }
  const std::vector<int>& peers() const { return plan_.hosted; }
  bool saves_states() const { return plan_.saves_states; }
  bool alive() const { return runtime_ != nullptr; }

  /// Starts its peers. As the trace says, they begin in round 0; or resume from a saved round; or
  /// join, though the process finds an old state of them.
  void start();
  /// All its peers have done their last rounds.
  bool done() const;
  /// It ends once all that it has sent has arrived.
  void close() { closes_ = true; }
  bool closes() const { return closes_; }
  /// Ends here and now, with its coroutines, timers and leases.
  void end() { runtime_.reset(); }

  /// It is asked to stop, as by SIGTERM: it ends once its peers have done the rounds that any of
  /// them has begun. False: a peer has begun none, and may wait for its first one for ever.
  bool interrupt();
  /// A round is done: an interrupt takes effect.
  void after_round();
  /// The number of rounds after which its peers have all ended their loops of rounds because of an
  /// interrupt.
  std::optional<Round> stopped_after() const {
    return runtime_->group().finished() ? runtime_->group().stops_after() : std::nullopt;
  }

  void pause(bool paused) { paused_ = paused, ready_ |= !paused; }
  bool paused() const { return paused_; }
  /// Its machine's clock jumps ahead.
  void advance_clock(Time lead) { lead_ += lead, ready_ = true; }

  /// It has something to do.
  void wake() { ready_ = true; }
  /// Runs all that is ready, if it was woken.
  void run_ready();
  /// When its next timer is due; Time::max() where it has none, or is paused, or has ended.
  Time next_timer() const;
  /// Fires the timers that are due.
  void fire();

  /// Delivers a chunk to a peer of this process.
  Status deliver(Chunk chunk);
  /// A peer's connection to `other` is lost. A process whose algorithm does not tolerate loss gives
  /// up.
  void on_link_lost(int peer, int other, const std::string& why);
  /// A peer of this process, which is woken for it.
  PeerEngine& engine(int peer);
  /// The round that a peer of this process is in.
  Round round_of(int peer) const;

  /// How fast it takes chunks from its connections (0: without limit), and when it takes the next.
  double read_bytes_per_second = 0;
  Time reads_again{0};

 private:
  World& world_;
  int number_;
  ProcessPlan plan_;
  Time lead_{0};  ///< of its machine's clock over the world's
  bool paused_ = false, ready_ = false, closes_ = false, interrupted_ = false;
  RoundRecorder hooks_;
  std::unique_ptr<Runtime> runtime_;  ///< null: the process has ended
};

}  // namespace gossamer::simulator
