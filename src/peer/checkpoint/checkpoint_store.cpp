#include "peer/checkpoint/checkpoint_store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>
#include <string_view>

namespace gossamer::peer {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kManifestSuffix = ".json";

/// The parts of a file name: round 60 and process 3 of "round-00000060-3.json" and of
/// "round-00000060-3.safetensors.77.part".
struct FileName {
  gossip::Round round = 0;
  int process = 0;
  std::string_view suffix;  ///< ".json", …
};
std::optional<FileName> parse_name(std::string_view name) {
  constexpr std::string_view prefix = "round-";
  if (!name.starts_with(prefix)) return {};
  name.remove_prefix(prefix.size());
  FileName parsed;
  const auto read_number = [&name](auto& value) {
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), value);
    name.remove_prefix(static_cast<std::size_t>(end - name.data()));
    return error == std::errc();
  };
  if (!read_number(parsed.round) || !name.starts_with('-')) return {};
  name.remove_prefix(1);
  if (!read_number(parsed.process) || !name.starts_with('.')) return {};
  if (name.find(kAsideSuffix) != std::string_view::npos) return {};
  parsed.suffix = name;
  return parsed;
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) files.push_back(entry.path());
  return files;
}

/// The files of a checkpoint, the manifest last.
std::array<fs::path, 3> files_of(const fs::path& manifest) {
  return {tensors_path(manifest), state_path(manifest), manifest};
}

/// Removes the manifest first: without it, the other files are no checkpoint.
void remove_checkpoint(const fs::path& manifest, Disk& disk) {
  if (disk.remove(manifest) != 0) return;
  for (const fs::path& file : files_of(manifest))
    if (has_entry(file)) disk.remove(file);
}

/// Renames the manifest last: a manifest without the other files is skipped, and is set aside
/// later.
void set_aside(const fs::path& manifest, Disk& disk) {
  const auto files = files_of(manifest);
  std::string suffix = kAsideSuffix;
  const auto taken = [&suffix](const fs::path& file) { return has_entry(file.string() + suffix); };
  for (int copy = 2; std::ranges::any_of(files, taken); ++copy)
    suffix = fmt::format("{}-{}", kAsideSuffix, copy);
  for (const fs::path& file : files)
    if (has_entry(file) && disk.rename(file, file.string() + suffix) != 0) return;
}

std::vector<CheckpointName> checkpoints_of(const fs::path& folder, int process) {
  std::vector<CheckpointName> names = checkpoints_in(folder);
  std::erase_if(names, [&](const CheckpointName& name) { return name.process != process; });
  return names;
}

}  // namespace

fs::path checkpoint_path(const fs::path& folder, gossip::Round round, int process) {
  return folder / fmt::format("round-{:08}-{}{}", round, process, kManifestSuffix);
}

std::vector<CheckpointName> checkpoints_in(const fs::path& folder) {
  std::vector<CheckpointName> names;
  for (const fs::path& path : files_in(folder)) {
    const std::string name = path.filename().string();
    if (const auto parsed = parse_name(name); parsed && parsed->suffix == kManifestSuffix)
      names.push_back({parsed->round, parsed->process, path});
  }
  std::ranges::sort(names, [](const CheckpointName& a, const CheckpointName& b) {
    return std::pair(b.round, a.process) < std::pair(a.round, b.process);
  });
  return names;
}

void prune_checkpoints(const fs::path& folder, int process, gossip::Round newest, std::size_t keep,
                       Disk& disk) {
  std::set<fs::path> kept;  // files of checkpoints
  std::size_t checkpoints = 0;
  for (const CheckpointName& name : checkpoints_of(folder, process)) {
    if (name.round > newest) set_aside(name.manifest, disk);
    else if (checkpoints >= std::max<std::size_t>(keep, 1)) remove_checkpoint(name.manifest, disk);
    else {
      for (const fs::path& file : files_of(name.manifest)) kept.insert(file);
      ++checkpoints;
    }
  }
  for (const fs::path& path : files_in(folder)) {
    const std::string name = path.filename().string();
    const auto parsed = parse_name(name);
    // A file of a later round belongs to a checkpoint that is being written.
    if (parsed && parsed->process == process && parsed->round <= newest && !kept.contains(path))
      disk.remove(path);
  }
}

int set_later_checkpoints_aside(const fs::path& folder, int process, gossip::Round round,
                                Disk& disk) {
  int count = 0;
  for (const CheckpointName& name : checkpoints_of(folder, process)) {
    if (name.round <= round) continue;
    set_aside(name.manifest, disk);
    ++count;
  }
  return count;
}

void remove_later_checkpoints(const fs::path& folder, int process, gossip::Round round,
                              Disk& disk) {
  for (const CheckpointName& name : checkpoints_of(folder, process))
    if (name.round > round) remove_checkpoint(name.manifest, disk);
  for (const fs::path& path : files_in(folder)) {
    const std::string name = path.filename().string();
    const auto parsed = parse_name(name);
    if (parsed && parsed->process == process && parsed->round > round) disk.remove(path);
  }
}

Result<std::map<gossip::Round, SavedStates>> find_states(
    const Setup& setup, const fs::path& folder, const std::vector<int>& hosted,
    std::optional<gossip::Round> only, const std::function<void(const std::string&)>& on_message) {
  std::map<gossip::Round, std::map<int, SavedStates::Node>> found;
  std::map<gossip::Round, double> wall_seconds;
  for (const CheckpointName& name : checkpoints_in(folder)) {
    if (only && name.round != *only) continue;
    auto manifest = verify_checkpoint(setup, name.manifest);
    if (!manifest.ok() && manifest.error().kind == ErrorKind::invalid) return manifest.error();
    if (!manifest.ok()) {
      on_message(fmt::format("skipped the checkpoint of round {}: {}", name.round,
                             manifest.error().message));
      continue;
    }
    if (manifest->part && manifest->part != setup.part)
      return invalid_error(
          fmt::format("{} has part {} of cut models, and not what this process holds; use --resume "
                      "auto, or what "
                      "`gossamer collect --checkpoint` puts together",
                      name.manifest.string(), *manifest->part));
    for (NodeState& state : manifest->nodes)
      if (const int node = state.node; std::ranges::binary_search(hosted, node))
        found[manifest->round].try_emplace(
            node, SavedStates::Node{std::move(state), tensors_path(name.manifest), manifest->part});
    double& seconds = wall_seconds[manifest->round];
    seconds = std::max(seconds, manifest->wall_seconds);
  }
  std::map<gossip::Round, SavedStates> complete;
  for (auto& [round, nodes] : found) {
    std::erase_if(nodes, [&setup, t = round](const auto& entry) {
      return !setup.counts_after(entry.first, t);
    });
    if (nodes.empty() || nodes.size() != setup.counted(hosted, round).size()) continue;
    SavedStates& states = complete[round];
    states.round = round;
    states.wall_seconds = wall_seconds[round];
    for (auto& [node, state] : nodes) states.nodes.push_back(std::move(state));
  }
  return complete;
}

}  // namespace gossamer::peer
