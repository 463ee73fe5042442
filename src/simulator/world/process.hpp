// A process of the simulated world: the protocol as a program runs it, for the peers that it hosts.
// It has its own scheduler, exchange, rows and coroutines, so it can end at any moment without the
// knowledge of other processes.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gossip/compute.hpp"
#include "gossip/engine/peer_group.hpp"
#include "simulator/world/world.hpp"

namespace gossamer::simulator {

/// b_i of a scenario, and the row that peer i starts from.
FloatRow target_of(const Scenario& scenario, int peer);
FloatRow start_of(const Scenario& scenario, int peer);

class Process final : private EngineHooks {
 public:
  Process(World& world, int number);
  ~Process() override;

  int number() const { return number_; }
  const std::vector<int>& peers() const { return hosted_; }
  bool alive() const { return runtime_ != nullptr; }
  bool paused() const { return paused_; }
  void pause(bool paused) { paused_ = paused, ready_ |= !paused; }
  /// Ends here and now, with its coroutines, timers and leases.
  void end();

  /// Its machine's clock jumps ahead.
  void advance_clock(Time lead) { lead_ += lead, ready_ = true; }
  /// It writes checkpoints: a fault restarts it, or strikes its disk.
  bool saves_states() const { return saves_states_; }

  /// Starts its peers.
  void start() { start(false); }
  /// After its end: a new process, which finds an old state of its peers, and joins.
  void restart();
  /// All its peers have done their last rounds.
  bool done() const;
  /// It ends once all that it has sent has arrived.
  void close() { closes_ = true; }
  bool closes() const { return closes_; }

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
  /// A peer's connection to `other` is lost, or restored. A process whose algorithm does not
  /// tolerate loss gives up.
  void lose_link(int peer, int other, const std::string& why);
  void restore_link(int peer, int other);
  /// Peer `other` has done its last round and closes its link to `peer`.
  void close_link(int peer, int other);
  /// The round that a peer of this process is in.
  Round round_of(int peer) const;
  /// How fast it takes chunks from its connections (0: without limit), and when it takes the next.
  double read_bytes_per_second = 0;
  Time reads_again{0};

 private:
  /// All that ends with the process.
  struct Runtime;

  bool after_round(PeerEngine& engine) override;
  void before_round(PeerEngine& engine, bool reinitialised) override;
  task<void> save(PeerEngine& engine) override;
  task<void> completed(PeerEngine& engine) override;
  void finished(PeerEngine& engine) override;

  std::unique_ptr<Runtime> make_runtime();
  GroupRequest group_request(Runtime& runtime);
  void start(bool joins);
  void restore(PeerEngine& engine, const std::vector<SavedState>& found);
  void join();
  PeerEngine& engine(int peer);

  World& world_;
  int number_;
  StepTimes times_;
  std::vector<int> hosted_;
  Time lead_{0};  ///< of its machine's clock over the world's
  bool saves_states_ = false, paused_ = false, ready_ = false, closes_ = false;
  std::unique_ptr<Runtime> runtime_;
};

}  // namespace gossamer::simulator
