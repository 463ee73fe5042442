#include "simulator/storage/simulated_disks.hpp"

#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "gpu/cpu_device.hpp"
#include "peer/checkpoint/checkpoint_store.hpp"
#include "peer/checkpoint/checkpointer.hpp"
#include "simulator/storage/failing_disk.hpp"

namespace gossamer::peer {
namespace {

namespace fs = std::filesystem;
namespace sim = gossip::sim;

/// What a checkpoint is made of where a scenario's network runs.
Setup setup_of(const sim::Scenario& scenario) {
  Setup setup;
  setup.config = load_config("", {fmt::format("run.peers={}", scenario.peers),
                                  fmt::format("run.seed={}", scenario.seed),
                                  fmt::format("checkpoint.every={}", scenario.checkpoint_every)})
                     .value();
  sim::Parts parts = sim::build(scenario).value();
  setup.schedule = std::move(parts.schedule);
  setup.algorithm = std::move(parts.algorithm);
  setup.device = std::make_unique<gpu::CpuDevice>(1);
  setup.parameters = static_cast<std::size_t>(scenario.length);
  return setup;
}

/// Of one run.
class CheckpointStorage final : public sim::Storage {
 public:
  CheckpointStorage(const sim::Scenario& scenario, fs::path folder)
      : setup_(setup_of(scenario)), folder_(std::move(folder)) {}
  ~CheckpointStorage() override {
    places_.clear();
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  void begin(int process, const std::vector<int>& hosted) override {
    Place& place = places_[process];
    place.disk.heal();
    place.fault.reset();
    place.killed = false;
    place.failed.clear();
    place.refused.clear();
    place.came.clear();
    place.checkpointer =
        std::make_unique<Checkpointer>(setup_, CheckpointerRequest{.hosted = hosted,
                                                                   .folder = folder_of(process),
                                                                   .log = folder_ / "log",
                                                                   .disk = &place.disk});
    place.hosted = hosted;
  }

  sim::Kept save(int process, const sim::SavedState& state) override {
    Place& place = places_.at(process);
    NodeSnapshot snapshot;
    snapshot.round = state.round;
    snapshot.state.node = state.peer;
    snapshot.state.steps = state.steps;
    snapshot.state.counters = state.counters;
    snapshot.rows = {state.rows.begin(), state.rows.end()};
    if (!place.checkpointer->add(std::move(snapshot)).ok())
      (place.struck() ? place.failed : place.refused).insert(state.round);
    place.go_on();
    if (++place.came[state.round] < place.hosted.size()) return sim::Kept::not_yet;
    return place.refused.contains(state.round)  ? sim::Kept::refused
           : place.failed.contains(state.round) ? sim::Kept::no
                                                : sim::Kept::yes;
  }

  std::vector<sim::SavedState> find(int process, const std::vector<int>& hosted) override {
    auto found = find_states(setup_, folder_of(process), hosted, {}, [](const std::string&) {});
    if (!found.ok() || found->empty()) return {};
    const SavedStates& newest = found->rbegin()->second;
    std::vector<sim::SavedState> states;
    for (const SavedStates::Node& node : newest.nodes) {
      auto state = read(newest.round, node);
      if (!state.ok()) return {};  // it was verified a moment ago: the oracle will miss it
      states.push_back(std::move(state).value());
    }
    return states;
  }

  void end(int process, sim::Outage outage) override {
    Place& place = places_.at(process);
    place.disk.strike_at(0, FailingDisk::Strike::stop);  // whoever is killed clears nothing away
    place.checkpointer.reset();
    if (outage == sim::Outage::process) return;
    place.disk.cut_power(outage == sim::Outage::old_names ? FailingDisk::Names::old
                                                          : FailingDisk::Names::current);
  }

  void strike(int process, sim::DiskFault fault, int calls) override {
    Place& place = places_.at(process);
    using Strike = FailingDisk::Strike;
    place.fault = fault;
    place.disk.strike_at(calls,
                         fault == sim::DiskFault::fail   ? Strike::fail
                         : fault == sim::DiskFault::tear ? Strike::tear
                                                         : Strike::stop_torn,
                         calls % 2 == 0 ? ENOSPC : EIO);
  }
  void relent(int process) override {
    if (Place& place = places_.at(process); !place.killed) place.relent();
  }
  bool killed(int process) const override {
    const auto found = places_.find(process);
    return found != places_.end() && found->second.killed;
  }

 private:
  struct Place {
    FailingDisk disk;
    std::unique_ptr<Checkpointer> checkpointer;  ///< null: the process has ended
    std::vector<int> hosted;
    std::optional<sim::DiskFault> fault;
    bool killed = false;
    std::set<gossip::Round> failed, refused;
    std::map<gossip::Round, std::size_t> came;  ///< peers that came by

    bool struck() const { return fault && disk.struck(); }
    void relent() {
      disk.heal();
      fault.reset();
    }
    /// After calls: one that was struck is over, or the last.
    void go_on() {
      if (!struck()) return;
      if (fault == sim::DiskFault::kill) killed = true;
      else relent();
    }
  };

  fs::path folder_of(int process) const { return folder_ / fmt::format("process-{}", process); }

  Result<sim::SavedState> read(gossip::Round round, const SavedStates::Node& node) const {
    sim::SavedState state{round, node.state.node, node.state.steps, node.state.counters, {}};
    const auto specs = setup_.algorithm->rows(*setup_.schedule);
    state.rows.resize(specs.size());
    GOSSAMER_TRY(SafetensorsFile file, SafetensorsFile::open(node.tensors));
    for (const StatePiece& piece : state_pieces(setup_, node.state.node)) {
      sim::FloatRow& row = state.rows[piece.row];
      row.resize(specs[piece.row].length(setup_.parameters));
      GOSSAMER_TRY_STATUS(file.read(*file.head().find(piece.name), 0,
                                    std::span(row).subspan(piece.first, piece.length)));
    }
    return state;
  }

  Setup setup_;
  fs::path folder_;
  std::map<int, Place> places_;
};

}  // namespace

Result<std::unique_ptr<SimulatedDisks>> SimulatedDisks::create() {
  std::error_code error;
  const fs::path place = fs::temp_directory_path(error);
  if (error)
    return Error{ErrorKind::data,
                 fmt::format("there is no folder for temporary files: {}; TMPDIR may name one",
                             error.message())};
  std::string name = (place / "gossamer-simulate-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    return Error{ErrorKind::data,
                 fmt::format("cannot make the folder {}: {}; TMPDIR may name another place", name,
                             std::strerror(errno))};
  return std::unique_ptr<SimulatedDisks>(new SimulatedDisks(name));
}

SimulatedDisks::~SimulatedDisks() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

sim::MakeStorage SimulatedDisks::storage() {
  return [this](const sim::Scenario& scenario) {
    return std::make_unique<CheckpointStorage>(scenario, folder_ / fmt::format("{}", runs_++));
  };
}

}  // namespace gossamer::peer
