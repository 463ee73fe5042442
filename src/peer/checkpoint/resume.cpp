#include "peer/checkpoint/resume.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/id_list.hpp"

namespace gossamer::peer {
namespace {

namespace fs = std::filesystem;

/// The round of the checkpoint that one of its two files names.
std::optional<gossip::Round> round_of(const fs::path& path) {
  for (const CheckpointName& name : checkpoints_in(path.parent_path()))
    if (name.manifest.filename() == path.filename() ||
        tensors_path(name.manifest).filename() == path.filename())
      return name.round;
  return {};
}

}  // namespace

ResumeChoice resume_choice(const std::string& text) {
  if (text == "none") return {};
  if (text == "auto") return {ResumeChoice::Kind::automatic};
  return {ResumeChoice::Kind::path, fs::absolute(text)};
}

fs::path checkpoint_folder(const Config& config, const fs::path& run_folder) {
  return config.checkpoint.folder.empty() ? run_folder / "checkpoints"
                                          : fs::path(config.checkpoint.folder);
}

Result<std::map<gossip::Round, SavedStates>> find_resumable_states(
    const Setup& setup, const std::vector<int>& hosted, const ResumeChoice& choice,
    const fs::path& run_folder, const std::function<void(const std::string&)>& on_message) {
  const fs::path own = checkpoint_folder(setup.config, run_folder);
  if (choice.kind == ResumeChoice::Kind::automatic)
    return find_states(setup, own, hosted, {}, on_message);
  if (choice.kind == ResumeChoice::Kind::none) {
    const auto existing = checkpoints_in(own);
    const auto found = std::ranges::find(existing, hosted.front(), &CheckpointName::process);
    if (setup.config.checkpoint.every == 0 || found == existing.end())
      return std::map<gossip::Round, SavedStates>();
    return data_error(fmt::format(
        "{} already contains checkpoints of a run ({}): resume it with --resume auto, choose "
        "another checkpoint.folder, or remove them",
        own.string(), found->manifest.filename().string()));
  }
  std::error_code ignored;
  const bool is_folder = fs::is_directory(choice.path, ignored);
  const auto only = is_folder ? std::nullopt : round_of(choice.path);
  if (!is_folder && !only)
    return data_error(
        fmt::format("--resume {}: there is no such folder or checkpoint; use none, auto, a "
                    "folder of checkpoints, or the .json file of a checkpoint",
                    choice.path.string()));
  const fs::path folder = is_folder ? choice.path : choice.path.parent_path();
  GOSSAMER_TRY(auto states, find_states(setup, folder, hosted, only, on_message));
  if (states.empty())
    return data_error(fmt::format("--resume {}: no valid checkpoint there has the states of {}",
                                  choice.path.string(), peers_text(hosted)));
  return states;
}

}  // namespace gossamer::peer
