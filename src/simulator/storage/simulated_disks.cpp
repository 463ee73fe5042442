#include "simulator/storage/simulated_disks.hpp"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "gpu/cpu_device.hpp"
#include "peer/checkpoint/checkpoint_store.hpp"
#include "peer/checkpoint/checkpointer.hpp"
#include "peer/setup/untrained_workload.hpp"
#include "simulator/storage/failing_disk.hpp"

namespace gossamer::simulator {
namespace {

namespace fs = std::filesystem;

/// The program's setup of a scenario, as far as checkpoints need it.
peer::Setup setup_of(const Scenario& scenario) {
  peer::Setup setup;
  setup.config =
      peer::load_config("", {fmt::format("run.peers={}", scenario.peers),
                             fmt::format("run.rounds={}", scenario.rounds),
                             fmt::format("run.seed={}", scenario.seed),
                             fmt::format("checkpoint.every={}", scenario.checkpoint_every)})
          .value();
  Protocol protocol = build_protocol(scenario).value();
  setup.schedule = std::move(protocol.schedule);
  setup.algorithm = std::move(protocol.algorithm);
  setup.device = std::make_unique<gpu::CpuDevice>(1);
  setup.workload =
      peer::make_untrained_workload(static_cast<std::size_t>(scenario.length), scenario.seed);
  setup.parameters = setup.workload->spec().parameters;
  return setup;
}

/// The checkpoints of one run.
class CheckpointStorage final : public Storage {
 public:
  CheckpointStorage(const Scenario& scenario, fs::path folder)
      : setup_(setup_of(scenario)), folder_(std::move(folder)) {}
  ~CheckpointStorage() override {
    disks_.clear();
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  void start(int process, const std::vector<int>& hosted) override {
    ProcessDisk& disk = disks_[process];
    disk.files.clear_failure();
    disk.fault.reset();
    disk.killed = false;
    disk.failed.clear();
    disk.refused.clear();
    disk.saved.clear();
    disk.repeated.clear();
    disk.checkpointer = std::make_unique<peer::Checkpointer>(
        setup_, peer::CheckpointerRequest{.hosted = hosted,
                                          .folder = folder_of(process),
                                          .sync_log = [&disk] { return disk.files.sync_log(); },
                                          .disk = &disk.files});
    disk.hosted = hosted;
  }

  SaveResult save(int process, const SavedState& state) override {
    ProcessDisk& disk = disks_.at(process);
    peer::NodeSnapshot snapshot;
    snapshot.round = state.round;
    snapshot.state.node = state.peer;
    snapshot.state.steps = state.steps;
    snapshot.state.counters = state.counters;
    snapshot.rows = {state.rows.begin(), state.rows.end()};
    if (!disk.checkpointer->add(std::move(snapshot)).ok())
      (disk.fault_struck() ? disk.failed : disk.refused).insert(state.round);
    disk.end_fault();
    if (!disk.saved[state.round].insert(state.peer).second) disk.repeated.insert(state.round);
    if (disk.repeated.contains(state.round) ||
        disk.saved[state.round].size() < setup_.counted(disk.hosted, state.round).size())
      return SaveResult::pending;
    return disk.refused.contains(state.round)  ? SaveResult::refused
           : disk.failed.contains(state.round) ? SaveResult::failed
                                               : SaveResult::saved;
  }

  std::map<Round, std::vector<SavedState>> load(int process,
                                                const std::vector<int>& hosted) override {
    std::map<Round, std::vector<SavedState>> all;
    const auto found =
        peer::find_states(setup_, folder_of(process), hosted, {}, [](const std::string&) {});
    if (!found.ok()) return all;
    for (const auto& [round, saved] : *found)
      for (const peer::SavedStates::Node& node : saved.nodes) {
        auto state = read(round, node);
        if (!state.ok()) return {};  // verified a moment ago: the oracle reports it as missing
        all[round].push_back(std::move(state).value());
      }
    return all;
  }

  void resume_at(int process, const std::vector<int>& hosted, Round round) override {
    peer::remove_later_checkpoints(folder_of(process), hosted.front(), round,
                                   disks_.at(process).files);
  }

  void end(int process, Outage outage) override {
    ProcessDisk& disk = disks_.at(process);
    disk.files.fail_at(0, FailingDisk::Failure::stop);  // a killed process cleans nothing up
    disk.checkpointer.reset();
    if (outage == Outage::process) return;
    disk.files.cut_power(outage == Outage::old_names ? FailingDisk::Names::old
                                                     : FailingDisk::Names::current);
  }

  void inject(int process, DiskFault fault, int calls) override {
    const auto found = disks_.find(process);
    if (found == disks_.end()) return;  // a process that has not run yet
    ProcessDisk& disk = found->second;
    using Failure = FailingDisk::Failure;
    disk.fault = fault;
    disk.files.fail_at(calls,
                       fault == DiskFault::fail   ? Failure::fail
                       : fault == DiskFault::tear ? Failure::tear
                                                  : Failure::stop_torn,
                       calls % 2 == 0 ? ENOSPC : EIO);
  }
  void clear_fault(int process) override {
    if (const auto found = disks_.find(process); found != disks_.end() && !found->second.killed)
      found->second.clear_fault();
  }
  bool killed(int process) const override {
    const auto found = disks_.find(process);
    return found != disks_.end() && found->second.killed;
  }

 private:
  struct ProcessDisk {
    FailingDisk files;
    std::unique_ptr<peer::Checkpointer> checkpointer;  ///< null: the process has ended
    std::vector<int> hosted;
    std::optional<DiskFault> fault;
    bool killed = false;
    std::set<Round> failed, refused;
    std::map<Round, std::set<int>> saved;  ///< peers whose state of the round was added
    std::set<Round> repeated;  ///< of which a peer's state was added twice: they are not saved

    bool fault_struck() const { return fault && files.failed(); }
    void clear_fault() {
      files.clear_failure();
      fault.reset();
    }
    /// After calls: a fault that has struck is over, or has killed the process.
    void end_fault() {
      if (!fault_struck()) return;
      if (fault == DiskFault::kill) killed = true;
      else clear_fault();
    }
  };

  fs::path folder_of(int process) const { return folder_ / fmt::format("process-{}", process); }

  Result<SavedState> read(Round round, const peer::SavedStates::Node& node) const {
    SavedState state{round, node.state.node, node.state.steps, node.state.counters, {}};
    const auto specs = setup_.algorithm->rows(*setup_.schedule);
    state.rows.resize(specs.size());
    GOSSAMER_TRY(peer::SafetensorsFile file, peer::SafetensorsFile::open(node.tensors));
    for (const peer::StateTensor& piece : peer::state_tensors(setup_, node.state.node)) {
      FloatRow& row = state.rows[piece.row];
      row.resize(specs[piece.row].length(setup_.parameters));
      GOSSAMER_TRY_STATUS(file.read(*file.header().find(piece.name), 0,
                                    std::span(row).subspan(piece.first, piece.length)));
    }
    return state;
  }

  peer::Setup setup_;
  fs::path folder_;
  std::map<int, ProcessDisk> disks_;
};

}  // namespace

Result<std::unique_ptr<SimulatedDisks>> SimulatedDisks::create() {
  GOSSAMER_TRY(TemporaryFolder folder, TemporaryFolder::make());
  return std::unique_ptr<SimulatedDisks>(new SimulatedDisks(std::move(folder)));
}

MakeStorage SimulatedDisks::storage() {
  return [this](const Scenario& scenario) {
    return std::make_unique<CheckpointStorage>(scenario,
                                               folder_.path() / fmt::format("{}", runs_++));
  };
}

}  // namespace gossamer::simulator
