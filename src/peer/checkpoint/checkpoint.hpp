// What is in a checkpoint: all that the nodes of a process need to go on from a round as if they
// had never stopped. Two files, of which the second makes the first count:
//   round-00000060-k.safetensors   every declared row and the optimizer's, by node: "peer3.<block>"
//   the parameters,
//                                  "peer3.state.<row>" the others
//   round-00000060-k.json          the manifest: which run, which round, each node's counters and
//   local steps, hashes of it all
// k is the process's lowest node. The number of local steps is random counter and data cursor at
// once: batches, noise and step sizes are keyed by (seed, peer, step), and whatever an algorithm
// draws by (seed, round).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "gossip/exchange/exchange.hpp"
#include "gossip/links/simulated_link.hpp"
#include "gossip/node.hpp"
#include "peer/runtime/setup.hpp"
#include "peer/storage/files.hpp"
#include "peer/storage/safetensors.hpp"

namespace gossamer::peer {

/// What the log counts from the run's start, or since a node's last record.
struct NodeMetrics {
  gossip::Time time{0};  ///< of the log's clock, when the node had done the round
  gossip::Traffic traffic;
  gossip::NodeTimes times;
  double mix_seconds = 0;
  std::uint64_t steps_recorded =
      0;  ///< local steps at the last record; loss and staleness are since then
  LossSum loss;
  gossip::Staleness staleness;
};

/// A node between two rounds, but for its rows.
struct NodeState {
  int node = 0;
  std::uint64_t steps = 0;
  std::vector<std::uint64_t> counters;
  NodeMetrics figures;
};

/// A tensor of a node's state as its rows have it. Row r < Algorithm::rows() is the algorithm's,
/// those behind are the optimizer's.
struct StatePiece {
  std::string name;
  std::vector<std::int64_t> shape;
  std::size_t row = 0, first = 0, length = 0;
};
/// All of a node's, in the file's order.
std::vector<StatePiece> state_pieces(const Setup& setup, int node);

struct Manifest {
  gossip::Round round = 0;
  std::string run_id;
  std::string configuration;     ///< Setup::configuration_hash()
  Json config;                   ///< as in the log's header
  double wall_seconds = 0;       ///< of the run until then
  std::vector<NodeState> nodes;  ///< ascending
  std::string head;              ///< hash of the tensors' file up to its first value
  std::vector<std::pair<std::string, std::string>> tensors;  ///< name and hash
};

/// Nothing of it depends on where it is written. The last field is the hash of the others.
std::string manifest_text(const Manifest& manifest);
/// Errors (data) name the file: missing, damaged, of another format.
Result<Manifest> read_manifest(const std::filesystem::path& path);

/// The tensors' file of a manifest's.
std::filesystem::path tensors_beside(const std::filesystem::path& manifest);

/// Whether both files are whole and are of this run: all hashes are computed. Errors name the file:
/// data where it is damaged, invalid where it is of another configuration, with the first key that
/// differs.
Result<Manifest> verify_checkpoint(const Setup& setup, const std::filesystem::path& manifest);

}  // namespace gossamer::peer
