// A folder of checkpoints: which there are, which can be gone on from, and which go.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <vector>

#include "base/result.hpp"
#include "peer/checkpoint/checkpoint.hpp"

namespace gossamer::peer {

/// A checkpoint by its manifest's name; nothing of it has been read.
struct CheckpointName {
  gossip::Round round = 0;
  int process = 0;  ///< lowest node of the process that wrote it
  std::filesystem::path manifest;
};
std::filesystem::path checkpoint_path(const std::filesystem::path& folder, gossip::Round round,
                                      int process);
/// Those in the folder, newest first, of all processes; none where there is no folder.
std::vector<CheckpointName> checkpoints_in(const std::filesystem::path& folder);

/// Takes away what process `process` has in the folder, now that its checkpoint of `newest` is
/// there: those of later rounds, of a life in which it was ahead; of the others all but the newest
/// `keep`; and whatever belongs to none (parts of files that it had no time to finish). That of
/// `newest` stays, so as only finite states become checkpoints, there always is a finite one. What
/// cannot be removed stays.
void drop_other_checkpoints(const std::filesystem::path& folder, int process, gossip::Round newest,
                            std::size_t keep, Disk& disk);
/// Takes away those of process `process` that are of a later round: a run goes on from the
/// checkpoint of `round`, and will write them again.
void drop_later_checkpoints(const std::filesystem::path& folder, int process, gossip::Round round,
                            Disk& disk);

/// The states of a process's nodes at one round, each in a file that has been verified.
struct SavedStates {
  gossip::Round round = 0;
  double wall_seconds = 0;
  struct Node {
    NodeState state;
    std::filesystem::path tensors;
  };
  std::vector<Node> nodes;  ///< in the order asked for
};

/// For each round at which every one of `hosted` has a valid state in the folder, whichever process
/// wrote it: those states. `only`: looks at that round alone. `message` is told of each checkpoint
/// that is broken and passed over. Errors (invalid): a checkpoint is of another configuration.
Result<std::map<gossip::Round, SavedStates>> find_states(
    const Setup& setup, const std::filesystem::path& folder, const std::vector<int>& hosted,
    std::optional<gossip::Round> only, const std::function<void(const std::string&)>& message);

}  // namespace gossamer::peer
