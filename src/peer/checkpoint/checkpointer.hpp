// Writes the checkpoints of a process during a run. Each node of the process adds its state when it
// completes a round that is due; the last node completes the checkpoint of that round. A node that
// takes no part in a round has no state in its checkpoint (Setup::counts_after).
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "peer/checkpoint/checkpoint.hpp"
#include "peer/checkpoint/checkpoint_writer.hpp"

namespace gossamer::peer {

struct CheckpointerRequest {
  std::vector<int> hosted;  ///< nodes of this process, ascending
  std::filesystem::path folder;
  /// Called before each checkpoint is complete: it makes the log durable, to which a resumed run
  /// appends. Thread: as add().
  std::function<Status()> sync_log;
  Disk* disk = &real_disk();
};

/// A node after `round` rounds. Its rows do not change until add() returns.
struct NodeSnapshot {
  gossip::Round round = 0;
  double wall_seconds = 0;
  NodeState state;
  std::vector<std::span<const float>> rows;  ///< in device memory, indexed by StateTensor::row
};

/// Thread: add() on the thread that trains, one call at a time.
class Checkpointer {
 public:
  /// `setup` outlives this object.
  Checkpointer(const Setup& setup, CheckpointerRequest request)
      : setup_(setup), request_(std::move(request)) {}

  /// Adds the state of a node; each node's rounds are ascending. If the checkpoint of a round
  /// fails, the error is returned once; existing checkpoints are kept, and later rounds are tried.
  Status add(NodeSnapshot node);

 private:
  struct PendingCheckpoint {
    std::unique_ptr<CheckpointWriter> writer;  ///< null after a failure
    Manifest manifest;
    std::set<int> nodes;  ///< added so far
    std::size_t due = 0;  ///< how many make it complete
  };

  Status begin(gossip::Round round, PendingCheckpoint& pending);
  Status add(NodeSnapshot& node, PendingCheckpoint& pending);
  Status commit(PendingCheckpoint& pending);

  const Setup& setup_;
  CheckpointerRequest request_;
  std::string configuration_;  ///< Manifest::configuration, computed on first use
  std::map<gossip::Round, PendingCheckpoint> pending_;
};

}  // namespace gossamer::peer
