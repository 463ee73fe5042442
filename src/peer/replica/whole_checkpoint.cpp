#include "peer/replica/whole_checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
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

/// The manifests of the workers of a part, by round.
std::map<gossip::Round, std::vector<fs::path>> manifests_in(const std::vector<fs::path>& folders) {
  std::map<gossip::Round, std::vector<fs::path>> manifests;
  for (const fs::path& folder : folders)
    for (const CheckpointName& name : checkpoints_in(folder))
      manifests[name.round].push_back(name.manifest);
  return manifests;
}

/// The states of all nodes in the checkpoints of a part; fewer if one is damaged.
Result<std::map<int, SavedPart>> read_part(
    const Setup& setup, int part, const std::vector<fs::path>& manifests,
    const std::function<void(const std::string&)>& on_message) {
  std::map<int, SavedPart> saved;
  for (const fs::path& path : manifests) {
    auto manifest = verify_checkpoint(setup, path);
    if (!manifest.ok() && manifest.error().kind == ErrorKind::invalid) return manifest.error();
    if (!manifest.ok()) {
      on_message(fmt::format("skipped {}", manifest.error().message));
      continue;
    }
    if (manifest->part != part) continue;
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
  for (std::size_t part = 1; part < parts.size(); ++part) {
    const SavedPart& saved = parts[part].at(node);
    if (saved.state.steps != whole.steps || saved.state.counters != whole.counters)
      return data_error(
          fmt::format("{}: this worker of replica {} has taken {} local steps, and "
                      "that of part 0 has taken {}",
                      saved.tensors.string(), node, saved.state.steps, whole.steps));
    NodeMetrics& metrics = whole.metrics;
    const NodeMetrics& more = saved.state.metrics;
    metrics.time = std::max(metrics.time, more.time);
    metrics.traffic.bytes_sent += more.traffic.bytes_sent;
    metrics.traffic.bytes_received += more.traffic.bytes_received;
  }
  return whole;
}

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
  return path;
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
  GOSSAMER_TRY(const auto parts, logs_by_part(folder, std::move(logs)));
  GOSSAMER_TRY(const Config config, read_config(parts, overrides));
  GOSSAMER_TRY(const Setup setup, read_setup(parts, config, {}));
  if (!setup.workload->spec().split)
    return data_error(fmt::format(
        "{}: how the models are cut depends on samples that the peers kept (data.partition = own): "
        "resume with the same [split] and --resume auto",
        folder.string()));
  std::vector<std::map<gossip::Round, std::vector<fs::path>>> manifests;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    const Config of_part = part_config(config, {0, static_cast<int>(part)});
    std::vector<fs::path> folders;
    for (const ProcessLog& log : parts[part]) {
      folders.push_back(checkpoint_folder(of_part, log.path.parent_path()));
      if (std::ranges::count(folders, folders.back()) > 1) folders.pop_back();
    }
    manifests.push_back(manifests_in(folders));
  }
  for (auto newest = manifests.front().rbegin(); newest != manifests.front().rend(); ++newest) {
    const gossip::Round round = newest->first;
    const std::vector<int> nodes = setup.counted_workers(round);
    SavedRound saved;
    const auto is_whole = [&](const std::map<int, SavedPart>& part) {
      return std::ranges::all_of(nodes, [&](int node) { return part.contains(node); });
    };
    for (std::size_t part = 0; part < parts.size(); ++part) {
      const auto found = manifests[part].find(round);
      if (found == manifests[part].end()) break;
      GOSSAMER_TRY(auto read, read_part(setup, static_cast<int>(part), found->second, on_message));
      if (!is_whole(read)) break;
      saved.push_back(std::move(read));
    }
    if (saved.size() == parts.size())
      return write_whole(setup, nodes, round, saved, folder / "checkpoints");
  }
  return data_error(
      fmt::format("in {} there is no round of which all workers have a checkpoint "
                  "(checkpoint.every)",
                  folder.string()));
}

}  // namespace gossamer::peer
