#include "peer/checkpoint/checkpoint_store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string_view>

namespace gossamer::peer {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kManifestEnd = ".json";

/// What a file's name begins with: "round-60-3" of "round-00000060-3.json" and of
/// "round-00000060-3.safetensors.77.part".
struct Stem {
  gossip::Round round = 0;
  int process = 0;
  std::string_view rest;  ///< ".json", …
};
std::optional<Stem> stem_of(std::string_view name) {
  constexpr std::string_view before = "round-";
  if (!name.starts_with(before)) return {};
  name.remove_prefix(before.size());
  Stem stem;
  const auto number = [&name](auto& value) {
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), value);
    name.remove_prefix(static_cast<std::size_t>(end - name.data()));
    return error == std::errc();
  };
  if (!number(stem.round) || !name.starts_with('-')) return {};
  name.remove_prefix(1);
  if (!number(stem.process) || !name.starts_with('.')) return {};
  stem.rest = name;
  return stem;
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) files.push_back(entry.path());
  return files;
}

/// The manifest goes first: without it there is no checkpoint.
void remove_checkpoint(const fs::path& manifest, Disk& disk) {
  if (disk.remove(manifest) == 0) disk.remove(tensors_beside(manifest));
}

std::vector<CheckpointName> checkpoints_of(const fs::path& folder, int process) {
  std::vector<CheckpointName> names = checkpoints_in(folder);
  std::erase_if(names, [&](const CheckpointName& name) { return name.process != process; });
  return names;
}

}  // namespace

fs::path checkpoint_path(const fs::path& folder, gossip::Round round, int process) {
  return folder / fmt::format("round-{:08}-{}{}", round, process, kManifestEnd);
}

std::vector<CheckpointName> checkpoints_in(const fs::path& folder) {
  std::vector<CheckpointName> names;
  for (const fs::path& path : files_in(folder)) {
    const std::string name = path.filename().string();
    if (const auto stem = stem_of(name); stem && stem->rest == kManifestEnd)
      names.push_back({stem->round, stem->process, path});
  }
  std::ranges::sort(names, [](const CheckpointName& a, const CheckpointName& b) {
    return std::pair(b.round, a.process) < std::pair(a.round, b.process);
  });
  return names;
}

void drop_other_checkpoints(const fs::path& folder, int process, gossip::Round newest,
                            std::size_t keep, Disk& disk) {
  std::set<fs::path> kept;
  for (const CheckpointName& name : checkpoints_of(folder, process)) {
    if (name.round > newest || kept.size() >= 2 * std::max<std::size_t>(keep, 1))
      remove_checkpoint(name.manifest, disk);
    else kept.insert({name.manifest, tensors_beside(name.manifest)});
  }
  for (const fs::path& path : files_in(folder)) {
    const std::string name = path.filename().string();
    const auto stem = stem_of(name);
    // A later round's is one on its way.
    if (stem && stem->process == process && stem->round <= newest && !kept.contains(path))
      disk.remove(path);
  }
}

void drop_later_checkpoints(const fs::path& folder, int process, gossip::Round round, Disk& disk) {
  for (const CheckpointName& name : checkpoints_of(folder, process))
    if (name.round > round) remove_checkpoint(name.manifest, disk);
  for (const fs::path& path : files_in(folder)) {
    const std::string name = path.filename().string();
    const auto stem = stem_of(name);
    if (stem && stem->process == process && stem->round > round) disk.remove(path);
  }
}

Result<std::map<gossip::Round, SavedStates>> find_states(
    const Setup& setup, const fs::path& folder, const std::vector<int>& hosted,
    std::optional<gossip::Round> only, const std::function<void(const std::string&)>& message) {
  std::map<gossip::Round, std::map<int, SavedStates::Node>> found;
  std::map<gossip::Round, double> wall_seconds;
  for (const CheckpointName& name : checkpoints_in(folder)) {
    if (only && name.round != *only) continue;
    auto manifest = verify_checkpoint(setup, name.manifest);
    if (!manifest.ok() && manifest.error().kind == ErrorKind::invalid) return manifest.error();
    if (!manifest.ok()) {
      message(fmt::format("passed over the checkpoint of round {}: {}", name.round,
                          manifest.error().message));
      continue;
    }
    for (NodeState& state : manifest->nodes)
      if (const int node = state.node; std::ranges::binary_search(hosted, node))
        found[manifest->round].try_emplace(
            node, SavedStates::Node{std::move(state), tensors_beside(name.manifest)});
    double& seconds = wall_seconds[manifest->round];
    seconds = std::max(seconds, manifest->wall_seconds);
  }
  std::map<gossip::Round, SavedStates> whole;
  for (auto& [round, nodes] : found) {
    if (nodes.size() != hosted.size()) continue;
    SavedStates& states = whole[round];
    states.round = round;
    states.wall_seconds = wall_seconds[round];
    for (auto& [node, state] : nodes) states.nodes.push_back(std::move(state));
  }
  return whole;
}

}  // namespace gossamer::peer
