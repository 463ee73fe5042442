// The content of a checkpoint: everything that the nodes of a process need to resume after a round
// with bit-identical results. A checkpoint is two files, or three where a program trains its own
// model, and is valid once the last exists:
//   round-00000060-k.safetensors   every declared row and the rows of the optimizer, by node: the
//                                  parameters "peer3.<block>", other rows "peer3.state.<row>"
//   round-00000060-k.state         what the program keeps for each peer beside its rows
//                                  (Workload::save_state), one after another
//   round-00000060-k.json          the manifest: run, round, each node's counters and number of
//                                  local steps, and hashes of everything
// A worker of a cut model that is in a process of its own writes the rows of its part.
// k is the lowest node of the process. The number of local steps is the state of the random
// numbers and of the data cursor: batches, noise and step sizes are keyed by (seed, peer, step),
// and random numbers of algorithms by (seed, round).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "gossip/exchange/exchange.hpp"
#include "gossip/links/simulated_link.hpp"
#include "gossip/node/node.hpp"
#include "peer/setup/setup.hpp"
#include "peer/storage/files.hpp"
#include "peer/storage/safetensors.hpp"

namespace gossamer::peer {

/// Cumulative values that the log records for a node.
struct NodeMetrics {
  gossip::Time time{0};  ///< when the node completed the round, by the clock of the log
  gossip::ByteCounters traffic;
  gossip::NodeTimes times;
  double mix_seconds = 0;
  std::uint64_t steps_recorded = 0;  ///< local steps at the last record
  LossSum loss;                      ///< since the last record
  gossip::Staleness staleness;       ///< since the last record
};

/// The program's state of a peer: a part of the state file.
struct ProgramState {
  std::uint64_t offset = 0, bytes = 0;
  std::string hash;
};

/// The state of a node between two rounds, without its rows.
struct NodeState {
  int node = 0;
  std::uint64_t steps = 0;  ///< local steps
  std::vector<std::uint64_t> counters;
  NodeMetrics metrics;
  std::optional<ProgramState> program;
  /// Of an open run: the ids of those that took part in the last round (base/id_list.hpp). Else
  /// empty.
  std::string participants;
  gossip::Round rounds_left_out = 0;  ///< Participation::rounds_left_out()
};

/// A tensor of a node's state, as a part of one of its rows. Rows of the algorithm come first, in
/// the order of Algorithm::rows(), and rows of the optimizer follow.
struct StateTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::size_t row = 0, first = 0, length = 0;  ///< `length` values of the row, from `first` on
  bool is_parameter = false;  ///< of the model; else state of the algorithm or the optimizer
};
/// All tensors of a node's state, in the order of the file; of one `part` of its model, if it is
/// given (SplitModel::parts()).
std::vector<StateTensor> state_tensors(const Setup& setup, int node, std::optional<int> part);
/// The same of what this process holds.
std::vector<StateTensor> state_tensors(const Setup& setup, int node);

struct Manifest {
  gossip::Round round = 0;
  std::string run_id;
  std::optional<int> part;       ///< of the model; none: it is whole
  std::string configuration;     ///< Setup::configuration_hash(), uncut where models are whole
  Json config;                   ///< as in the header of the log
  double wall_seconds = 0;       ///< duration of the run so far
  std::vector<NodeState> nodes;  ///< ascending
  std::string header_hash;       ///< of the tensor file's header
  std::vector<std::pair<std::string, std::string>> tensors;  ///< name and hash
};

/// The manifest as JSON. The last field is the hash of the others. Independent of the path.
std::string manifest_text(const Manifest& manifest);
/// Errors (data) name the file: it is missing, damaged, or has another format.
Result<Manifest> read_manifest(const std::filesystem::path& path);

/// The path of the tensor file that belongs to a manifest.
std::filesystem::path tensors_path(const std::filesystem::path& manifest);
/// The path of the state file that belongs to a manifest or to its tensor file.
std::filesystem::path state_path(const std::filesystem::path& manifest);
/// Reads a peer's state from a state file and checks its hash. Errors (data) name the file.
Result<std::string> read_program_state(const std::filesystem::path& path,
                                       const ProgramState& state);

/// What Manifest::configuration is in this run.
std::string checkpoint_configuration(const Setup& setup, std::optional<int> part);

/// Reads all files and checks all hashes, and that they belong to this run: of whole models,
/// whichever way the run cuts them, or of a part of a model that is cut as this run's. Errors name
/// the file: (data) it is damaged; (invalid) it is from another configuration, with the first key
/// that differs.
Result<Manifest> verify_checkpoint(const Setup& setup, const std::filesystem::path& manifest);

}  // namespace gossamer::peer
