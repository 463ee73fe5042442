// A run's configuration: one TOML file, `--set section.key=value` on top, every key declared
// (base/parameter.hpp), unknown ones refused with the line and the choices. [run] [topology]
// [algorithm] [codec] [model] [data] [optimizer] are shared by all peers and hashed; [sim] [net]
// [local] [log] [checkpoint] are each machine's own. A relative path in a file is relative to that
// file's folder, one given with --set to the working directory; once read, paths are absolute.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/parameter.hpp"
#include "base/result.hpp"
#include "net/options.hpp"
#include "topology/mixing_matrix.hpp"
#include "train/optimizer.hpp"
#include "train/shards.hpp"

namespace gossamer::peer {

struct RunOptions {
  int peers = 16;
  std::uint64_t rounds = 200;
  std::uint64_t seed = 0;
  std::string init = "same";  ///< same | different: starting parameters
  std::string id;             ///< names the run; empty: the hash of the shared sections
};

struct ExchangeChoice {
  std::string policy = "sync";  ///< sync | deadline | stale | async
  int staleness = 4;            ///< of stale: rounds that a peer may be ahead of a neighbour
  double slack =
      0.25;  ///< of deadline: for how much of a round a mix waits longer than rows usually take
  double largest_value = 1e18;  ///< in magnitude, of what peers tell each other
};

struct SimOptions {
  double latency_ms = 0;
  std::string latency_file;   ///< a table instead (gossip/links/link_table.hpp)
  double latency_spread = 0;  ///< width of the factors by which pairs of nodes differ
  double jitter_ms = 0;
  double bandwidth_mbit_s = 0;  ///< 0: without limit
  std::string bandwidth_file;
  double bandwidth_spread = 0;
  std::string spread = "log_normal";  ///< uniform | log_normal: how links' factors are drawn
  double uplink_mbit_s = 0;           ///< shared by all links out of a node; 0: without limit
  double downlink_mbit_s = 0;         ///< shared by all links into a node; 0: without limit
  double compute_ms = 0;              ///< virtual time of a local step,
  double sample_ms = 0;               ///< and of each sample of its batch;
  double compute_spread = 0;          ///< width of the log-normal factor of each step
  int slow_peers = 0;                 ///< peers 0 … slow_peers−1 take slow_factor times as long
  double slow_factor = 10;
};

struct LocalOptions {
  std::string device = "cpu";  ///< auto | cpu | cuda | cuda:N
  bool deterministic = false;  ///< on a GPU: peers of a network are trained one by one
  int threads = 0;             ///< 0: one per core
  std::string out;             ///< run folder; empty: runs/<run id>
};

struct LogOptions {
  int every = 10;               ///< rounds between records; 0: the first and the last only
  std::string sketch = "auto";  ///< auto | on | off; auto: where the process hosts not all peers
};

struct CheckpointOptions {
  int every = 0;       ///< rounds between checkpoints; 0: none
  std::string folder;  ///< empty: checkpoints in the run folder
  int keep = 2;        ///< newest ones that stay
};

/// A plug-in chosen by name, and its own parameters.
struct Choice {
  std::string kind;
  ParameterValues values;
};

/// Everything that was decided, typed; and as text for files, logs and hashes.
struct Config {
  RunOptions run;
  Choice topology;
  topology::WeightOptions weights;
  Choice algorithm;
  ExchangeChoice exchange;
  Choice codec;
  Choice model;
  Choice data;
  train::ShardOptions shards;
  train::OptimizerOptions optimizer;
  SimOptions sim;
  net::NetOptions net;
  LocalOptions local;
  LogOptions log;
  CheckpointOptions checkpoint;

  /// section → key → value, defaults filled in: what the resolved file, the log's header and the
  /// hash are made of.
  std::map<std::string, ParameterValues> resolved;
  /// "section.key" of what says where this machine finds a thing, and not what the run is.
  std::set<std::string> local_keys;

  /// Hash of the shared sections; local_keys and run.id, which only names the run, left out.
  std::string shared_hash() const;
  /// run.id, or the first 16 digits of shared_hash().
  std::string run_id() const;
  /// The configuration as TOML that reruns the run.
  std::string to_toml() const;
};

/// "section.key=value" as given with --set.
using Override = std::string;

/// Reads and checks a file (empty path: nothing but defaults and overrides). Errors (invalid, or
/// data where the file cannot be read) name the file, the line, the key, and the choices.
Result<Config> load_config(const std::string& path, const std::vector<Override>& overrides);

/// One section's keys, for `gossamer list` and the documentation.
struct SectionSpec {
  std::string name;
  std::string summary;
  std::vector<ParameterSpec> keys;  ///< without those of the chosen kind
};
std::vector<SectionSpec> section_specs();

}  // namespace gossamer::peer
