// A process of the simulated world: the protocol as a program runs it, for the peers that live
// there. It has its own scheduler, exchange, rows and coroutines, so it can end at any moment
// without anybody else knowing.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gossip/compute.hpp"
#include "gossip/engine/peer_group.hpp"
#include "gossip/links/simulated_link.hpp"
#include "gpu/cpu_device.hpp"
#include "simulator/world/world.hpp"

namespace gossamer::gossip::sim {

/// Runs when the world says so, by its machine's clock, which is ahead of the world's by `lead`.
class ProcessScheduler final : public Scheduler {
 public:
  ProcessScheduler(const World& world, const Time& lead) : world_(world), lead_(lead) {}
  Time now() const override { return world_.now() + lead_; }
  /// All that is ready.
  void run() override { drain(); }
  bool fire() { return fire_due(now()); }
  /// By the world's clock.
  Time next() const { return next_timer() == Time::max() ? Time::max() : next_timer() - lead_; }

 private:
  const World& world_;
  const Time& lead_;
};

/// Peer i minimises ½ ‖x − b_i‖², b_i random; what it is asked for goes on record.
class RecordingTrainer final : public Trainer {
 public:
  explicit RecordingTrainer(World& world) : world_(world) {}
  void run(TrainOperation operation, std::span<TrainRequest* const> requests) override;
  double rate(int, std::uint64_t) const override { return world_.scenario().rate; }
  std::size_t shard_size(int) const override { return 1; }
  std::uint64_t batches_per_epoch(int) const override { return 1; }

 private:
  World& world_;
  std::map<int, FloatRow> targets_;
};

/// b_i of a scenario, and the row that peer i starts from.
FloatRow target_of(const Scenario& scenario, int peer);
FloatRow start_of(const Scenario& scenario, int peer);

class Process final : private EngineHooks {
 public:
  Process(World& world, int number);
  ~Process() override;

  int number() const { return number_; }
  const std::vector<int>& peers() const { return hosted_; }
  bool alive() const { return place_ != nullptr; }
  bool paused() const { return paused_; }
  void pause(bool paused) { paused_ = paused, touched_ |= !paused; }
  /// Ends here and now: coroutines, timers and leases with it.
  void end();

  /// Its machine's clock leaps ahead.
  void leap(Time lead) { lead_ += lead, touched_ = true; }
  /// It writes checkpoints: a fault makes somebody look at them.
  bool keeps() const { return keeps_; }

  /// Starts its peers.
  void start() { start(false); }
  /// Of one that has ended: a new process, which finds an old state of its peers, and joins.
  void begin_again();
  /// All its peers have done their last rounds.
  bool done() const;
  /// And what they had to say goes out.
  bool leaving() const { return leaving_; }
  void leave() { leaving_ = true; }
  /// Runs what is ready, if anything happened to it.
  void settle();
  /// When its next timer falls due; Time::max() where it has none, or is not running.
  Time next() const;
  void fire();
  void touch() { touched_ = true; }

  /// For a peer here.
  Status deliver(Chunk chunk);
  /// A peer's connection to `other` is gone, or there again. Of an algorithm that needs everybody,
  /// the process then gives up.
  void lost(int peer, int other, const std::string& why);
  void back(int peer, int other);
  /// `other` has said goodbye to it.
  void left(int peer, int other);
  /// The round that a peer here is in.
  Round round_of(int peer) const;
  /// How fast it takes chunks from its connections (0: as fast as they come), and when it takes the
  /// next.
  double read_bytes_per_second = 0;
  Time reads_again{0};

 private:
  /// All that ends with the process.
  struct Place;
  void before_round(PeerEngine& engine, bool reinitialised) override;
  bool after_round(PeerEngine& engine) override;
  task<void> save(PeerEngine& engine) override;
  task<void> completed(PeerEngine& engine) override;
  void finished(PeerEngine& engine) override;

  void start(bool joins);
  void restore(PeerEngine& engine, const std::vector<SavedState>& found);
  void join();
  std::unique_ptr<Place> make_place();
  GroupRequest group_request(Place& place);
  PeerEngine& engine(int peer);

  World& world_;
  int number_;
  StepTimes times_;
  std::vector<int> hosted_;
  Time lead_{0};
  bool keeps_ = false, paused_ = false, touched_ = false, leaving_ = false;
  std::unique_ptr<Place> place_;
};

}  // namespace gossamer::gossip::sim
