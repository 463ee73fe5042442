// Where a run starts: at round 0, or at a checkpoint (--resume).
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "peer/checkpoint/checkpoint_store.hpp"

namespace gossamer::peer {

/// The value of --resume.
struct ResumeChoice {
  enum class Kind {
    none,       ///< at round 0, in a folder without a run
    automatic,  ///< at the newest checkpoint of the run, or at round 0 if there is none
    path,       ///< at this checkpoint, or at the newest one in this folder
  };
  Kind kind = Kind::none;
  std::filesystem::path path = {};
};
/// Parses "none", "auto" or a path.
ResumeChoice resume_choice(const std::string& text);

/// The folder of the checkpoints of a process with this run folder.
std::filesystem::path checkpoint_folder(const Config& config,
                                        const std::filesystem::path& run_folder);

/// Returns, by round, the states from which `hosted` can resume. Round 0 needs no state and is not
/// included. `on_message` receives messages for the user. Errors: (data) the path leads to no
/// checkpoint, or a new run would remove checkpoints of another run; (invalid) a checkpoint is from
/// another configuration.
Result<std::map<gossip::Round, SavedStates>> find_resumable_states(
    const Setup& setup, const std::vector<int>& hosted, const ResumeChoice& choice,
    const std::filesystem::path& run_folder,
    const std::function<void(const std::string&)>& on_message);

}  // namespace gossamer::peer
