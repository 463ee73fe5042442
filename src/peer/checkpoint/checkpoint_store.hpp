// The checkpoints in a folder: listing them, removing old ones, and finding the rounds from which a
// process can resume.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "peer/checkpoint/checkpoint.hpp"

namespace gossamer::peer {

/// A checkpoint, by the name of its manifest. Its files have not been read.
struct CheckpointName {
  gossip::Round round = 0;
  int process = 0;  ///< lowest node of the process that wrote it
  std::filesystem::path manifest;
};
/// The path of a manifest.
std::filesystem::path checkpoint_path(const std::filesystem::path& folder, gossip::Round round,
                                      int process);
/// The checkpoints of all processes in the folder, newest first; empty if there is no folder.
std::vector<CheckpointName> checkpoints_in(const std::filesystem::path& folder);

/// After the checkpoint of round `newest` was written, sets aside the checkpoints of `process` of
/// later rounds, from an incarnation that was ahead, and removes from its files: all other
/// checkpoints except the newest `keep`, and files that belong to no checkpoint, such as unfinished
/// ones. The checkpoint of `newest` is never removed. Files that cannot be removed are ignored.
void prune_checkpoints(const std::filesystem::path& folder, int process, gossip::Round newest,
                       std::size_t keep, Disk& disk);
/// Removes the checkpoints of `process` of rounds after `round`, from which the run resumes. They
/// will be written again.
void remove_later_checkpoints(const std::filesystem::path& folder, int process, gossip::Round round,
                              Disk& disk);

/// A file that is set aside has this at the end of its name (".aside", ".aside-2", …). It is kept,
/// and is no checkpoint: rename it to use it.
inline constexpr const char* kAsideSuffix = ".aside";
/// Sets aside the checkpoints of `process` of rounds after `round`. Returns how many there were.
int set_later_checkpoints_aside(const std::filesystem::path& folder, int process,
                                gossip::Round round, Disk& disk);

/// The states of a process's nodes after one round, each in a file that was verified.
struct SavedStates {
  gossip::Round round = 0;
  double wall_seconds = 0;
  struct Node {
    NodeState state;
    std::filesystem::path tensors;
    std::optional<int> part = {};  ///< Manifest::part
  };
  std::vector<Node> nodes;  ///< ascending
};

/// Returns, by round, the states in the folder, for every round in which each of `hosted` that
/// counts has a valid state, and one does. It does not matter which process wrote a state: that of
/// a whole model serves a process that holds a part of it too. `only`:
/// the only round to consider. `on_message` receives a message for each damaged checkpoint, which
/// is skipped. Error (invalid): a checkpoint is from another configuration, or of another part.
Result<std::map<gossip::Round, SavedStates>> find_states(
    const Setup& setup, const std::filesystem::path& folder, const std::vector<int>& hosted,
    std::optional<gossip::Round> only, const std::function<void(const std::string&)>& on_message);

}  // namespace gossamer::peer
