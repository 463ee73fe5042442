// What writes a process's checkpoints while it runs: each of its nodes comes by at the rounds that
// are due, in its own time, and the last one completes what is kept of that round.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "peer/checkpoint/checkpoint.hpp"
#include "peer/checkpoint/checkpoint_writer.hpp"

namespace gossamer::peer {

struct CheckpointerRequest {
  std::vector<int> hosted;  ///< nodes of this process, ascending
  std::filesystem::path folder;
  std::filesystem::path log;  ///< is on the disk before a checkpoint is: it goes on from there too
  Disk* disk = &real_disk();
};

/// A node that has done `round` rounds. Its rows stay as they are until add() has returned.
struct NodeSnapshot {
  gossip::Round round = 0;
  double wall_seconds = 0;
  NodeState state;
  std::vector<std::span<const float>> rows;  ///< as StatePiece counts them, in device memory
};

/// Thread: add() where training runs, one at a time; due() any.
class Checkpointer {
 public:
  /// `setup` outlives this object.
  Checkpointer(const Setup& setup, CheckpointerRequest request)
      : setup_(setup), request_(std::move(request)) {}

  bool due(gossip::Round round) const {
    const int every = setup_.config.checkpoint.every;
    return every > 0 && round > 0 && round % static_cast<gossip::Round>(every) == 0;
  }
  /// Each node in the order of its rounds. An error says, once, why that round's checkpoint will
  /// not be; those there are stay, and later ones are tried.
  Status add(NodeSnapshot node);

 private:
  struct Pending {
    std::unique_ptr<CheckpointWriter> writer;  ///< null: it failed
    Manifest manifest;
    std::size_t nodes = 0;  ///< that came
  };

  Status begin(gossip::Round round, Pending& pending);
  Status add(const NodeSnapshot& node, Pending& pending);
  Status commit(Pending& pending);

  const Setup& setup_;
  CheckpointerRequest request_;
  std::string configuration_;  ///< Setup::configuration_hash(), once it is needed
  std::map<gossip::Round, Pending> pending_;
};

}  // namespace gossamer::peer
