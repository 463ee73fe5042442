#include "peer/replica/whole_checkpoint.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "peer/checkpoint/checkpoint_store.hpp"
#include "peer/checkpoint/checkpoint_writer.hpp"
#include "peer/checkpoint/resume.hpp"
#include "peer/checkpoint/saved_rows.hpp"
#include "peer/config/config_json.hpp"
#include "peer/log/part_logs.hpp"
#include "peer/log/run_files.hpp"
#include "peer/log/run_setup.hpp"
#include "peer/replica/worker_place.hpp"

namespace gossamer::peer {
namespace {

namespace fs = std::filesystem;

/// What a worker wrote after a round.
struct SavedPart {
  NodeState state;
  double wall_seconds = 0;
  fs::path tensors;
};
/// By part, and by node.
using SavedRound = std::vector<std::map<int, SavedPart>>;

/// The workers of a part: where their checkpoints lie, and these, by round.
struct PartFolders {
  std::set<fs::path> folders;
  std::map<gossip::Round, std::vector<fs::path>> manifests = {};

  static PartFolders find(const Config& of_part, const std::vector<ProcessLog>& logs) {
    PartFolders found;
    for (const ProcessLog& log : logs)
      found.folders.insert(checkpoint_folder(of_part, log.path.parent_path()));
    for (const fs::path& folder : found.folders)
      for (const CheckpointName& name : checkpoints_in(folder))
        found.manifests[name.round].push_back(name.manifest);
    return found;
  }
};

/// What is wrong with a checkpoint that a part's workers are to have written after `round`.
std::string wrong_with(const Manifest& manifest, const Setup& setup, int part,
                       gossip::Round round) {
  if (manifest.run_id != setup.config.run_id())
    return fmt::format("it is of run {}, and the logs are of run {}", manifest.run_id,
                       setup.config.run_id());
  if (manifest.part != part) return fmt::format("it is not of part {}", part);
  if (manifest.round != round)
    return fmt::format("it is of round {}, unlike its name", manifest.round);
  return "";
}

/// The states of all nodes in the checkpoints of a part; fewer if one is damaged.
Result<std::map<int, SavedPart>> read_part(
    const Setup& setup, int part, gossip::Round round, const std::vector<fs::path>& manifests,
    const std::function<void(const std::string&)>& on_message) {
  std::map<int, SavedPart> saved;
  for (const fs::path& path : manifests) {
    auto manifest = verify_checkpoint(setup, path);
    if (!manifest.ok() && manifest.error().kind == ErrorKind::invalid) return manifest.error();
    if (!manifest.ok()) {
      on_message(fmt::format("skipped {}", manifest.error().message));
      continue;
    }
    if (const std::string wrong = wrong_with(*manifest, setup, part, round); !wrong.empty()) {
      on_message(fmt::format("skipped {}: {}", path.string(), wrong));
      continue;
    }
    for (NodeState& state : manifest->nodes) {
      const int node = state.node;
      saved.try_emplace(node,
                        SavedPart{std::move(state), manifest->wall_seconds, tensors_path(path)});
    }
  }
  return saved;
}

/// The state of a whole replica: each of its workers has sent rows of its own.
Result<NodeState> whole_state(const SavedRound& parts, int node) {
  NodeState whole = parts.front().at(node).state;
  whole.program.reset();  // programs' models are not cut
  for (std::size_t part = 1; part < parts.size(); ++part) {
    const SavedPart& saved = parts[part].at(node);
    if (saved.state.steps != whole.steps)
      return data_error(
          fmt::format("{}: this worker of replica {} has taken {} local steps, and "
                      "that of part 0 has taken {}",
                      saved.tensors.string(), node, saved.state.steps, whole.steps));
    if (saved.state.counters != whole.counters)
      return data_error(fmt::format(
          "{}: the exchanges of this worker of replica {} are not those of the worker of part 0",
          saved.tensors.string(), node));
    whole.rounds_left_out = std::max(whole.rounds_left_out, saved.state.rounds_left_out);
    NodeMetrics& metrics = whole.metrics;
    const NodeMetrics& more = saved.state.metrics;
    metrics.time = std::max(metrics.time, more.time);
    metrics.traffic.bytes_sent += more.traffic.bytes_sent;
    metrics.traffic.bytes_received += more.traffic.bytes_received;
  }
  return whole;
}

/// Writes the checkpoint of a round. Later ones that are there, of an earlier call, are set aside.
Result<fs::path> write_whole(const Setup& setup, const std::vector<int>& nodes, gossip::Round round,
                             const SavedRound& parts, const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    return data_error(
        fmt::format("cannot create the folder {}: {}", folder.string(), error.message()));
  const fs::path path = checkpoint_path(folder, round, nodes.front());
  GOSSAMER_TRY(const auto writer, CheckpointWriter::create(setup, nodes, path, real_disk()));
  Manifest manifest;
  manifest.round = round;
  manifest.run_id = setup.config.run_id();
  manifest.configuration = checkpoint_configuration(setup, {});
  manifest.config = config_json(setup.config);
  for (const int node : nodes) {
    std::vector<fs::path> tensors;
    for (const auto& part : parts) {
      const SavedPart& saved = part.at(node);
      tensors.push_back(saved.tensors);
      manifest.wall_seconds = std::max(manifest.wall_seconds, saved.wall_seconds);
    }
    GOSSAMER_TRY(NodeState state, whole_state(parts, node));
    GOSSAMER_TRY(const auto rows, whole_rows(setup, node, tensors));
    for (const StateTensor& tensor : state_tensors(setup, node))
      GOSSAMER_TRY_STATUS(writer->add(
          tensor.name, std::span(rows[tensor.row]).subspan(tensor.first, tensor.length)));
    manifest.nodes.push_back(std::move(state));
  }
  GOSSAMER_TRY_STATUS(writer->commit(std::move(manifest)));
  set_later_checkpoints_aside(folder, nodes.front(), round, real_disk());
  return path;
}

/// The setup of whole replicas of a run, of which `parts` are the logs. Error: its checkpoints
/// cannot be put together.
Result<Setup> setup_of(const std::vector<std::vector<ProcessLog>>& parts, const Config& config,
                       const fs::path& folder) {
  for (const std::vector<ProcessLog>& logs : parts)
    for (const ProcessLog& log : logs)
      GOSSAMER_TRY_STATUS(check_same_run(parts.front().front(), log));
  if (!can_build_model(config))
    return invalid_error(
        fmt::format("{}: how the models are cut depends on samples that the peers kept "
                    "(data.partition = own, without data.test_path): resume with the same [split] "
                    "and --resume auto",
                    folder.string()));
  GOSSAMER_TRY(Setup setup, read_setup(parts, config, {}));
  const auto& split = setup.workload->spec().split;
  if (!split || split->parts().size() != parts.size())
    return data_error(
        fmt::format("{}: the logs are of {} parts of a model, and the model is cut in another way",
                    folder.string(), parts.size()));
  return setup;
}

/// The states of all nodes after `round`, by part; nothing if one is missing.
Result<std::optional<SavedRound>> read_round(
    const Setup& setup, const std::vector<PartFolders>& parts, gossip::Round round,
    const std::vector<int>& nodes, const std::function<void(const std::string&)>& on_message) {
  SavedRound saved;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    const auto found = parts[part].manifests.find(round);
    if (found == parts[part].manifests.end()) return std::optional<SavedRound>();
    GOSSAMER_TRY(auto read,
                 read_part(setup, static_cast<int>(part), round, found->second, on_message));
    std::vector<int> missing;
    std::ranges::copy_if(nodes, std::back_inserter(missing),
                         [&](int node) { return !read.contains(node); });
    if (!missing.empty()) {
      on_message(fmt::format("skipped round {}: part {} of replica {} has no checkpoint of it",
                             round, part, fmt::join(missing, ", ")));
      return std::optional<SavedRound>();
    }
    saved.push_back(std::move(read));
  }
  return std::optional(std::move(saved));
}

Error no_common_round(const std::vector<PartFolders>& parts) {
  std::vector<std::string> newest;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    const auto& [folders, manifests] = parts[part];
    if (manifests.empty())
      return data_error(fmt::format(
          "the workers of part {} have no checkpoint in {} (checkpoint.every, checkpoint.folder)",
          part, folders.begin()->string()));
    newest.push_back(std::to_string(manifests.rbegin()->first));
  }
  return data_error(
      fmt::format("there is no round of which all workers have a checkpoint that "
                  "fits; the newest of the parts, by their names, are of rounds {}",
                  fmt::join(newest, ", ")));
}

}  // namespace

Result<fs::path> collect_checkpoint(const fs::path& folder, const std::vector<Override>& overrides,
                                    const std::function<void(const std::string&)>& on_message) {
  GOSSAMER_TRY(std::vector<ProcessLog> logs, read_logs(folder, on_message));
  if (logs.empty()) return no_run_in(folder);
  if (!logs.front().header.contains("part"))
    return invalid_error(
        fmt::format("{}: the models of this run are not cut over processes, so the checkpoints of "
                    "each process are of whole models: resume from them with --resume",
                    folder.string()));
  GOSSAMER_TRY(const auto by_part, logs_by_part(folder, std::move(logs)));
  GOSSAMER_TRY(const Config config, read_config(by_part, overrides));
  GOSSAMER_TRY(const Setup setup, setup_of(by_part, config, folder));
  std::vector<PartFolders> parts;
  for (std::size_t part = 0; part < by_part.size(); ++part)
    parts.push_back(
        PartFolders::find(part_config(config, {0, static_cast<int>(part)}), by_part[part]));
  const auto& rounds = parts.front().manifests;
  for (auto newest = rounds.rbegin(); newest != rounds.rend(); ++newest) {
    const gossip::Round round = newest->first;
    const std::vector<int> nodes = setup.counted_workers(round);
    if (nodes.empty()) continue;
    GOSSAMER_TRY(const auto saved, read_round(setup, parts, round, nodes, on_message));
    if (saved) return write_whole(setup, nodes, round, *saved, folder / "checkpoints");
  }
  return no_common_round(parts);
}

}  // namespace gossamer::peer
