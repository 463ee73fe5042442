// A run's configuration: a TOML file and `--set section.key=value` overrides, checked against
// declared keys (base/parameter.hpp). An unknown key is an error that names the line and the known
// keys. The sections [run] [topology] [algorithm] [codec] [mixing] [attack] [model] [data]
// [optimizer] [split] [privacy] are shared by all peers and hashed; [sim] [net] [local] [log]
// [checkpoint] may differ between machines. A relative path in a file is relative to the file's
// folder, and one given with
// --set to the working directory; after loading, all paths are absolute.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/parameter.hpp"
#include "base/result.hpp"
#include "gossip/policy.hpp"
#include "net/options.hpp"
#include "topology/mixing_matrix.hpp"
#include "train/optimizer.hpp"
#include "train/shards.hpp"
#include "train/split/options.hpp"

namespace gossamer::peer {

struct RunOptions {
  int peers = 16;
  std::uint64_t rounds = 200;
  std::uint64_t seed = 0;
  std::string init = "same";  ///< initial parameters: same | different
  std::string id;             ///< name of the run; empty: the hash of the shared sections
  /// Which peers take part in which rounds (topology::Participants::parse); empty: all in all.
  std::vector<std::string> participants;
  /// Other peers join while the network runs, and any may leave; `participants` are those that
  /// begin.
  bool open = false;
};

/// Which rows a mix waits for, and which values are accepted.
struct PolicyOptions {
  std::string policy = "sync";  ///< one of gossip::policy_names()
  int staleness = 4;            ///< stale: rounds by which a peer may be ahead of a neighbour
  double slack = 0.25;          ///< deadline: extra waiting time, as a fraction of a round
  double largest_value = 1e18;  ///< bound on the magnitude of exchanged values

  gossip::Policy kind() const { return gossip::policy_named(policy); }
};

/// Which peers are hostile, and since when.
struct AttackOptions {
  std::vector<int> peers;
  double fraction = 0;       ///< of hostile peers, in [0, 1); 0: `peers` names them
  std::uint64_t from = 0;    ///< first round of the attack
  double strength = 0;       ///< 0: the kind's own
  bool line_search = false;  ///< each message has the strength that does most harm
};

struct SimOptions {
  std::string probe;  ///< folder of measured tables (peer/storage/probe_tables.hpp), in place of
                      ///< all other keys
  double latency_ms = 0;
  std::string
      latency_file;  ///< table of latencies (gossip/links/link_table.hpp); replaces latency_ms
  double latency_spread = 0;  ///< width of the random factor of each pair of nodes
  double jitter_ms = 0;
  double bandwidth_mbit_s = 0;  ///< 0: unlimited
  std::string bandwidth_file;
  double bandwidth_spread = 0;
  std::string spread = "log_normal";  ///< distribution of the factors: uniform | log_normal
  double uplink_mbit_s = 0;           ///< shared by all outgoing links of a node; 0: unlimited
  double downlink_mbit_s = 0;         ///< shared by all incoming links of a node; 0: unlimited
  double compute_ms = 0;              ///< virtual time of a local step
  double sample_ms = 0;       ///< virtual time of each sample of a step's batch, in addition
  double compute_spread = 0;  ///< width of the log-normal factor of each step
  int slow_peers = 0;         ///< peers 0 … slow_peers−1 take slow_factor times as long
  double slow_factor = 10;
};

struct LocalOptions {
  std::string device = "cpu";  ///< auto | cpu | cuda | cuda:N
  bool deterministic = false;  ///< on a GPU: the peers of a networked process train one by one
  std::string matmul_precision = "float32";  ///< on a GPU: float32 | tf32 | bf16
  int threads = 0;                           ///< 0: one per core
  std::string out;                           ///< run folder; empty: runs/<run id>
};

struct LogOptions {
  int every = 10;               ///< rounds between records; 0: only the first and the last
  int last = 1;                 ///< of the run's rounds: each has a record
  std::string sketch = "auto";  ///< auto | on | off; auto: if the process does not host all peers
};

struct CheckpointOptions {
  int every = 0;       ///< rounds between checkpoints; 0: none
  std::string folder;  ///< empty: `checkpoints` in the run folder
  int keep = 2;        ///< number of newest checkpoints that are retained
};

/// The name of a plug-in, and its parameters.
struct PluginChoice {
  std::string kind;
  ParameterValues values;
};

struct TopologyChoice : PluginChoice {
  topology::WeightOptions weights;
};
struct ModelChoice : PluginChoice {
  train::SplitOptions split;  ///< the section [split]
};
struct AttackChoice : PluginChoice {
  AttackOptions options;
};

/// model.kind of a model that a file describes.
inline constexpr const char* kGraphModel = "graph";
/// model.kind of a model that the program brings which starts the run (peer/setup/workload.hpp),
/// with its own data and optimizer.
inline constexpr const char* kExternalModel = "external";

/// The whole configuration, typed, and as text for files, logs and hashes.
struct Config {
  RunOptions run;
  TopologyChoice topology;
  PluginChoice algorithm;
  PolicyOptions exchange;
  PluginChoice codec;
  PluginChoice mixing;  ///< the rule
  AttackChoice attack;
  ModelChoice model;
  PluginChoice data;
  train::ShardOptions shards;
  train::OptimizerOptions optimizer;  ///< with [privacy]
  SimOptions sim;
  net::NetOptions net;
  LocalOptions local;
  LogOptions log;
  CheckpointOptions checkpoint;

  /// section → key → value, with defaults. The resolved file, the log's header and the hash are
  /// made from it.
  std::map<std::string, ParameterValues> resolved;
  /// Keys, as "section.key", that only say where this machine has a file.
  std::set<std::string> local_keys;

  /// The shared sections without local_keys and run.id: lines "section.key=value", and their hash.
  std::string shared_settings() const;
  std::string shared_hash() const;
  /// run.id, or the first 16 digits of shared_hash().
  std::string run_id() const;
  /// The configuration as a TOML file that repeats the run.
  std::string to_toml() const;
};

/// "section.key=value", the argument of --set.
using Override = std::string;

/// Reads and checks a file; an empty path means defaults and overrides only. Errors (invalid; data
/// if the file cannot be read) name the file, the line, the key, and the possible values.
Result<Config> load_config(const std::string& path, const std::vector<Override>& overrides);

/// The keys of a section, for `gossamer list`.
struct SectionSpec {
  std::string name;
  std::string summary;
  std::vector<ParameterSpec> keys;  ///< without the parameters of the kinds
  std::string kind_key = {};        ///< that names the kind; empty: the section has no kinds
};
std::vector<SectionSpec> section_specs();

}  // namespace gossamer::peer
