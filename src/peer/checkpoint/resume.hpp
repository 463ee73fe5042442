// Where a run begins: at round 0, or at a checkpoint (--resume).
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "peer/checkpoint/checkpoint_store.hpp"

namespace gossamer::peer {

/// What --resume says.
struct ResumeChoice {
  enum class Kind {
    none,       ///< at round 0, in a folder that holds no run
    automatic,  ///< at the newest checkpoint of the run's own folder; where there is none, at round
                ///< 0
    path,       ///< at this checkpoint, or at the newest in this folder
  };
  Kind kind = Kind::none;
  std::filesystem::path path = {};
};
/// "none", "auto" or a path.
ResumeChoice resume_choice(const std::string& text);

/// Where a process with this run folder keeps its checkpoints.
std::filesystem::path checkpoint_folder(const Config& config,
                                        const std::filesystem::path& run_folder);

/// By round, the states that `hosted` can begin with beside round 0's. `message`: lines for people.
/// Errors: data where a path leads to none, or where a run that begins anew finds checkpoints of
/// another that it would drop; invalid where one is of another configuration.
Result<std::map<gossip::Round, SavedStates>> states_to_begin_with(
    const Setup& setup, const std::vector<int>& hosted, const ResumeChoice& choice,
    const std::filesystem::path& run_folder,
    const std::function<void(const std::string&)>& message);

}  // namespace gossamer::peer
