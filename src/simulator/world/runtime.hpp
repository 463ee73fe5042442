// What ends with a process of the simulated world: its scheduler, its device, and its peers with
// their exchange, rows and coroutines.
#pragma once

#include <memory>
#include <vector>

#include "gossip/compute.hpp"
#include "gossip/engine/peer_group.hpp"
#include "gossip/links/simulated_link.hpp"
#include "gpu/cpu_device.hpp"
#include "simulator/world/recording_trainer.hpp"
#include "simulator/world/world.hpp"
#include "topology/participants/changing_schedule.hpp"

namespace gossamer::simulator {

/// Runs when the world says so, by its machine's clock, which is `lead` ahead of the world's.
class ProcessScheduler final : public Scheduler {
 public:
  ProcessScheduler(const World& world, const Time& lead) : world_(world), lead_(lead) {}
  Time now() const override { return world_.now() + lead_; }
  /// Runs all that is ready.
  void run() override { drain(); }
  bool fire() { return fire_due(now()); }
  /// By the world's clock.
  Time next() const { return next_timer() == Time::max() ? Time::max() : next_timer() - lead_; }

 private:
  const World& world_;
  const Time& lead_;
};

/// What stays of a process from one restart to the next.
struct ProcessPlan {
  std::vector<int> hosted;    ///< its peers, ascending
  StepTimes times;            ///< of its local steps
  bool saves_states = false;  ///< it writes checkpoints: a fault restarts it, or strikes its disk
};
ProcessPlan plan_of(const Scenario& scenario, int process);

class Runtime {
 public:
  /// All references outlive the runtime. `hooks` are those of every peer.
  Runtime(World& world, const ProcessPlan& plan, const Time& lead, EngineHooks& hooks);
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  ProcessScheduler& scheduler() { return scheduler_; }
  PeerGroup& group() { return group_; }

  /// Starts the peers in round 0.
  void start();
  /// Starts them from the saved round, as the program's Host does.
  void resume(const Resumption& resumption);
  /// They join a network that runs. `found`: old states of theirs.
  void join(const std::vector<SavedState>& found);

 private:
  GroupRequest request(const ProcessPlan& plan);
  void restore(const std::vector<SavedState>& states);
  void tolerate_loss();
  void reset_link(int here, int there, const std::string& why);

  World& world_;
  std::unique_ptr<topology::ChangingSchedule> changing_;  ///< of an open run
  ProcessScheduler scheduler_;
  InlineExecutor executor_;
  gpu::CpuDevice device_;
  RecordingTrainer trainer_;
  Compute compute_;
  SimulatedPort port_;
  PeerGroup group_;
};

}  // namespace gossamer::simulator
