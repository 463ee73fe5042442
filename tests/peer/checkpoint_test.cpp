// Checkpoints on a failing disk: if any system call of a write fails, is torn, or is the last one
// of the process, the old or the new checkpoint is valid. A checkpoint with any damaged byte is
// detected.
#include <algorithm>
#include <set>

#include "base/hash.hpp"
#include "peer/checkpoint/checkpoint_store.hpp"
#include "peer/checkpoint/checkpointer.hpp"
#include "simulator/storage/failing_disk.hpp"
#include "tests/peer/test_util.hpp"

using namespace gossamer;
using namespace gossamer::peer;
using namespace gossamer::peer::testing;

namespace {

const std::vector<int> kHosted{0, 1};

std::string program_state(gossip::Round round, int node) {
  return fmt::format("state of peer {} after round {}", node, round);
}

/// A workload that keeps a state beside its rows, as the model of a program does.
class KeepsState final : public Workload {
 public:
  explicit KeepsState(std::shared_ptr<Workload> rows) : rows_(std::move(rows)) {}
  const WorkloadSpec& spec() const override { return rows_->spec(); }
  void initialise(int node, std::span<float> row) const override { rows_->initialise(node, row); }
  gossip::Trainer* trainer() override { return rows_->trainer(); }
  std::vector<train::Evaluation> evaluate(const RowViews& rows,
                                          std::span<const int> nodes) override {
    return rows_->evaluate(rows, nodes);
  }
  LossSum loss_sum(int peer) const override { return rows_->loss_sum(peer); }
  void set_loss_sum(int, const LossSum&, const float*) override {}
  std::string save_state(int peer) override { return program_state(round, peer); }
  std::string data_hash() const override { return rows_->data_hash(); }
  void set_one_at_a_time(bool) override {}

  gossip::Round round = 0;

 private:
  std::shared_ptr<Workload> rows_;
};

/// A process of two peers with a momentum, whose rows at round t have values that identify t.
struct Process {
  explicit Process(const fs::path& folder_in, simulator::FailingDisk& disk_in, int keep = 2)
      : folder(folder_in),
        disk(disk_in),
        setup(set_up({"run.peers=2", "optimizer.momentum=0.5", "checkpoint.every=10",
                      fmt::format("checkpoint.keep={}", keep)})),
        workload(std::make_shared<KeepsState>(setup.workload)),
        checkpointer(setup,
                     {kHosted, folder / "checkpoints", [this] { return disk.sync_log(); }, &disk}) {
    setup.workload = workload;
  }

  static float value(gossip::Round round, int node, std::size_t row) {
    return static_cast<float>(round) + static_cast<float>(node) / 4 + static_cast<float>(row) / 16;
  }

  /// Adds the states of both peers after `round` rounds; returns the last error.
  Status save(gossip::Round round, float spoilt = 0) {
    Status status;
    workload->round = round;
    for (const int node : kHosted) {
      std::vector<std::vector<float>> rows;
      for (std::size_t row = 0; row < 2; ++row)
        rows.emplace_back(setup.parameters, value(round, node, row) + spoilt);
      NodeSnapshot snapshot;
      snapshot.round = round;
      snapshot.state.node = node;
      snapshot.state.steps = round;
      snapshot.rows = {rows.begin(), rows.end()};
      if (Status added = checkpointer.add(std::move(snapshot)); !added.ok()) status = added;
    }
    return status;
  }

  std::map<gossip::Round, SavedStates> found() {
    auto states = find_states(setup, folder / "checkpoints", kHosted, {},
                              [this](const std::string& line) { said.push_back(line); });
    REQUIRE_MESSAGE(states.ok(), (states.ok() ? "" : states.error().message));
    return std::move(states).value();
  }

  /// The round of the newest checkpoint. Checks every value of all checkpoints.
  gossip::Round newest() {
    const auto states = found();
    REQUIRE_FALSE(states.empty());
    for (const auto& [round, saved] : states)
      for (const SavedStates::Node& node : saved.nodes) {
        CHECK(node.state.steps == round);
        REQUIRE(node.state.program);
        CHECK(read_program_state(state_path(node.tensors), *node.state.program).value() ==
              program_state(round, node.state.node));
        const auto file = read_safetensors(node.tensors);
        REQUIRE(file.ok());
        for (const Tensor& tensor : file->tensors) {
          const int owner = tensor.name.starts_with("peer1") ? 1 : 0;
          const float expected = value(round, owner, tensor.name.ends_with("momentum") ? 1 : 0);
          CHECK(std::ranges::all_of(tensor.values, [&](float v) { return v == expected; }));
        }
      }
    return states.rbegin()->first;
  }

  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder / "checkpoints"))
      names.insert(entry.path().filename().string());
    return names;
  }

  fs::path folder;
  simulator::FailingDisk& disk;
  Setup setup;
  std::shared_ptr<KeepsState> workload;
  Checkpointer checkpointer;
  std::vector<std::string> said;
};

std::set<std::string> files_of(const std::vector<gossip::Round>& rounds) {
  std::set<std::string> names;
  for (const gossip::Round round : rounds)
    for (const char* end : {"json", "safetensors", "state"})
      names.insert(fmt::format("round-{:08}-0.{}", round, end));
  return names;
}

/// System calls of the checkpoint of round 30, which removes an old one.
int calls_of_a_checkpoint(int keep) {
  const Folder folder;
  simulator::FailingDisk disk;
  Process process(folder.path, disk, keep);
  for (const gossip::Round round : {10, 20}) REQUIRE(process.save(round).ok());
  disk.fail_at(1 << 30, simulator::FailingDisk::Failure::fail);
  REQUIRE(process.save(30).ok());
  CHECK(process.files() ==
        files_of(keep == 1 ? std::vector<gossip::Round>{30} : std::vector<gossip::Round>{20, 30}));
  return disk.calls();
}

}  // namespace

TEST_CASE(
    "if any system call of a checkpoint fails, is torn or is the last one, the old or the new "
    "checkpoint is valid") {
  using Failure = simulator::FailingDisk::Failure;
  for (const int keep : {1, 2}) {
    const int calls = calls_of_a_checkpoint(keep);
    CHECK(calls > 20);
    for (int call = 0; call < calls; ++call)
      for (const Failure failure :
           {Failure::fail, Failure::tear, Failure::stop, Failure::stop_torn})
        for (const int after : {0, 1, 2}) {  // how it goes on: as it is; after a power cut with old
                                             // names, or with the current ones
          CAPTURE(fmt::format("keep {}, call {}, failure {}, after {}", keep, call,
                              static_cast<int>(failure), after));
          const Folder folder;
          simulator::FailingDisk disk;
          Process process(folder.path, disk, keep);
          for (const gossip::Round round : {10, 20}) REQUIRE(process.save(round).ok());
          disk.fail_at(call, failure, call % 2 == 0 ? ENOSPC : EIO);
          const Status saved = process.save(30);
          CHECK(disk.failed());
          if (!saved.ok())
            CHECK(saved.error().message.starts_with("there is no checkpoint of round 30: "));
          if (after > 0)
            disk.cut_power(after == 1 ? simulator::FailingDisk::Names::old
                                      : simulator::FailingDisk::Names::current);
          const gossip::Round newest = process.newest();
          CHECK((newest == 30 || newest == 20));
          if (saved.ok()) CHECK(newest == 30);
          if (after > 0 || failure == Failure::stop || failure == Failure::stop_torn) continue;
          REQUIRE(process.save(40).ok());  // the disk works again: what was left over goes
          CHECK(process.newest() == 40);
          CHECK(process.files().size() == files_of(keep == 1 ? std::vector<gossip::Round>{40}
                                                             : std::vector<gossip::Round>{30, 40})
                                              .size());
        }
  }
}

TEST_CASE(
    "a failed write is reported once with the system's reason, and a state that is not finite is "
    "never saved") {
  const Folder folder;
  simulator::FailingDisk disk;
  Process process(folder.path, disk);
  REQUIRE(process.save(10).ok());
  disk.fail_at(1, simulator::FailingDisk::Failure::fail, ENOSPC);
  const Status full = process.save(20);
  REQUIRE_FALSE(full.ok());
  CHECK(full.error().message.find("No space left on device") != std::string::npos);
  CHECK(process.files() == files_of({10}));
  for (const gossip::Round round : {30, 40, 50}) {
    const Status lost = process.save(round, std::numeric_limits<float>::infinity());
    REQUIRE_FALSE(lost.ok());
    CHECK(
        lost.error().message ==
        fmt::format("there is no checkpoint of round {}: peer0.0.dense.weights is no longer finite",
                    round));
  }
  CHECK(process.newest() == 10);
  REQUIRE(process.save(60).ok());
  CHECK(process.files() == files_of({10, 60}));
}

TEST_CASE("a node that joins after another node of its process leaves no incomplete checkpoint") {
  const Folder folder;
  simulator::FailingDisk disk;
  Process process(folder.path, disk);
  std::vector<float> row(process.setup.parameters, 1.0F);
  NodeSnapshot alone;
  alone.round = 10;
  alone.rows = {row, row};
  REQUIRE(process.checkpointer.add(std::move(alone)).ok());
  CHECK(disk.open_files() == 2);  // of tensors and of states
  REQUIRE(process.save(20).ok());
  CHECK(disk.open_files() == 0);
  CHECK(process.files() == files_of({20}));
}

TEST_CASE(
    "a checkpoint with any damaged byte or wrong length is invalid, and the one before it is "
    "used") {
  const Folder folder;
  simulator::FailingDisk disk;
  Process process(folder.path, disk);
  for (const gossip::Round round : {10, 20}) REQUIRE(process.save(round).ok());
  const fs::path manifest = checkpoint_path(folder.path / "checkpoints", 20, 0);
  for (const fs::path& path : {manifest, tensors_path(manifest), state_path(manifest)}) {
    const std::string whole = content_of(path);
    const std::size_t stride = std::max<std::size_t>(1, whole.size() / 400);
    for (std::size_t at = 0; at < whole.size(); at += stride) {
      CAPTURE(fmt::format("{} at {}", path.string(), at));
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ '\x04');
      written(path, changed);
      const auto valid = verify_checkpoint(process.setup, manifest);
      CHECK_FALSE(valid.ok());
      if (!valid.ok())
        CHECK(valid.error().message.find(path.parent_path().string()) != std::string::npos);
      if (at + 1 == whole.size()) continue;  // a manifest without its last line's end is whole
      written(path, whole.substr(0, at));
      CHECK_FALSE(verify_checkpoint(process.setup, manifest).ok());
    }
    written(path, whole.substr(0, whole.size() / 2));
    process.said.clear();
    CHECK(process.newest() == 10);
    REQUIRE(process.said.size() == 1);
    CHECK(process.said.front().starts_with("skipped the checkpoint of round 20: "));
    written(path, whole);
    CHECK(process.newest() == 20);
    fs::remove(path);
    CHECK(process.newest() == 10);
    written(path, whole);
  }
}

TEST_CASE("a forged manifest, whose checksum is right, cannot start a run at numbers beyond it") {
  const Folder folder;
  simulator::FailingDisk disk;
  Process process(folder.path, disk);
  REQUIRE(process.save(20).ok());
  const fs::path path = checkpoint_path(folder.path / "checkpoints", 20, 0);
  const Json whole = Json::parse(content_of(path));
  const auto refusal_with = [&](const char* pointer, const Json& value) {
    Json forged = whole;
    forged[Json::json_pointer(pointer)] = value;
    forged.erase("checksum");
    forged["checksum"] = hash_hex(text_of(forged));
    written(path, text_of(forged, 1) + "\n");
    const auto manifest = verify_checkpoint(process.setup, path);
    return manifest.ok() ? std::string() : manifest.error().message;
  };
  CHECK(refusal_with("/round", 20) == "");
  CHECK(refusal_with("/round", process.setup.config.run.rounds) == "");
  const auto beyond = [&](const char* pointer, const Json& value) {
    CAPTURE(pointer);
    CAPTURE(text_of(value));
    CHECK(refusal_with(pointer, value).starts_with(path.string() + " is damaged: "));
  };
  for (const char* pointer : {"/round", "/nodes/0/local_steps", "/nodes/1/node", "/part"}) {
    beyond(pointer, std::uint64_t{1} << 63);
    beyond(pointer, ~std::uint64_t{0});
    for (const Json& value : {Json(-1), Json(0.5), Json("1"), Json(true), Json(), Json::array()})
      beyond(pointer, value);
  }
  beyond("/round", process.setup.config.run.rounds + 1);
  beyond("/nodes/1/node", process.setup.nodes());
  beyond("/nodes/1/node", 0);
  beyond("/part", 0);  // this model is not cut
  for (const Json& value : {Json(), Json::array(), Json("s"), Json(7)}) beyond("/config", value);
  for (const char* pointer : {"/nodes/0/bytes_sent", "/nodes/0/loss_count", "/nodes/0/nanoseconds",
                              "/nodes/0/steps_recorded", "/nodes/0/staleness/sum"})
    for (const Json& value : {Json(-1), Json(~std::uint64_t{0}), Json("1"), Json()})
      beyond(pointer, value);
  for (const char* pointer :
       {"/wall_seconds", "/nodes/0/train_seconds", "/nodes/0/wait_seconds", "/nodes/0/mix_seconds"})
    for (const Json& value : {Json(-1), Json(1e300), Json("1"), Json()}) beyond(pointer, value);
  for (const Json& value : {Json(), Json::array(), Json(7)}) beyond("/nodes/0/participants", value);
  beyond("/nodes/0/counters", Json::array({-1}));
  CHECK(refusal_with("/nodes/0/rounds_left_out", 1) == "");
  for (const Json& value : {Json(-1), Json("1"), Json(process.setup.config.run.rounds + 1)})
    beyond("/nodes/0/rounds_left_out", value);
  for (const char* pointer : {"/nodes/0/program/offset", "/nodes/1/program/bytes"})
    beyond(pointer, -1);
  const std::string state = state_path(path).string() + " is damaged: ";
  for (const std::uint64_t number : {std::uint64_t{1000}, ~std::uint64_t{0}}) {
    CHECK(refusal_with("/nodes/0/program/offset", number).starts_with(state));
    CHECK(refusal_with("/nodes/1/program/bytes", number).starts_with(state));
  }
  beyond("/tensors", Json::array({1}));
}

TEST_CASE(
    "a checkpoint of another configuration is refused; the error names the key that differs, or "
    "the data") {
  const Folder folder;
  simulator::FailingDisk disk;
  Process process(folder.path, disk);
  REQUIRE(process.save(10).ok());
  const auto refusal = [&](const Overrides& overrides) {
    const Setup other = set_up(Overrides{"run.peers=2", "optimizer.momentum=0.5"} + overrides);
    const auto states =
        find_states(other, folder.path / "checkpoints", kHosted, {}, [](const std::string&) {});
    if (states.ok()) return std::string();
    CHECK(states.error().kind == ErrorKind::invalid);
    return states.error().message;
  };
  CHECK(refusal({"optimizer.momentum=0.9"}).find("optimizer.momentum is 0.5 there and 0.9 here") !=
        std::string::npos);
  CHECK(refusal({"run.rounds=7"}).find("run.rounds is 200 there and 7 here") != std::string::npos);
  CHECK(refusal({"local.threads=1", "sim.latency_ms=4", "log.every=3", "checkpoint.keep=9",
                 "run.id=other"})
            .empty());
}

TEST_CASE("resuming removes later checkpoints of the process, and keeps those of other processes") {
  const Folder folder;
  simulator::FailingDisk disk;
  Process process(folder.path, disk, 5);
  for (const gossip::Round round : {10, 20, 30}) REQUIRE(process.save(round).ok());
  const fs::path here = folder.path / "checkpoints";
  for (const char* name :
       {"round-00000030-7.json", "round-00000020-0.safetensors.77.part", "notes.txt"})
    written(here / name, "x");
  remove_later_checkpoints(here, 0, 20, disk);
  auto expected = files_of({10, 20});
  expected.insert({"round-00000030-7.json", "round-00000020-0.safetensors.77.part", "notes.txt"});
  CHECK(process.files() == expected);
  REQUIRE(process.save(30).ok());
  expected = files_of({10, 20, 30});
  expected.insert({"round-00000030-7.json", "notes.txt"});
  CHECK(process.files() == expected);
}

TEST_CASE(
    "checkpoints of an incarnation that was ahead are kept until the current one has written a "
    "checkpoint") {
  const Folder folder;
  simulator::FailingDisk disk;
  Process process(folder.path, disk, 2);
  for (const gossip::Round round : {80, 100}) REQUIRE(process.save(round).ok());
  disk.fail_at(5, simulator::FailingDisk::Failure::fail);
  CHECK_FALSE(process.save(40).ok());
  CHECK(process.files() == files_of({80, 100}));
  REQUIRE(process.save(50).ok());
  auto aside = files_of({80, 100});  // other processes chose the earlier round: nothing is lost
  const auto with_aside = [&](auto expected) {
    for (const std::string& name : aside) expected.insert(name + ".aside");
    return expected;
  };
  CHECK(process.files() == with_aside(files_of({50})));
  REQUIRE(process.save(60).ok());
  CHECK(process.files() == with_aside(files_of({50, 60})));
  CHECK(set_later_checkpoints_aside(folder.path / "checkpoints", 0, 50, disk) == 1);
  REQUIRE(process.save(60).ok());
  REQUIRE(process.save(55).ok());  // a second checkpoint of one name is set aside beside the first
  CHECK(process.files().contains("round-00000060-0.json.aside"));
  CHECK(process.files().contains("round-00000060-0.json.aside-2"));
}
