#include "peer/config/sections.hpp"

#include <algorithm>
#include <iterator>

#include "gossip/algorithm.hpp"
#include "gossip/attack.hpp"
#include "gossip/policy.hpp"
#include "gossip/rule.hpp"
#include "topology/kind.hpp"
#include "train/dataset.hpp"
#include "train/model.hpp"
#include "train/privacy/options.hpp"
#include "train/split/options.hpp"

namespace gossamer::peer {
namespace {

template <class Kind>
std::vector<KindSpec> kind_specs(const std::vector<Kind>& catalog) {
  std::vector<KindSpec> specs;
  for (const Kind& kind : catalog) specs.push_back({kind.name, kind.parameters});
  return specs;
}

void add_latency(ParameterSet<SimOptions>& set) {
  set.add("latency_ms", &SimOptions::latency_ms,
          {.help = "one-way latency of every link", .minimum = 0, .maximum = 1e9, .unit = "ms"})
      .add("latency_file", &SimOptions::latency_file,
           {.help = "a table of latencies that replaces latency_ms: a square matrix in ms, row: "
                    "sender, column: receiver, numbers separated by blanks or commas; one row per "
                    "peer (and server), or per region, which peers fill in blocks of equal size",
            .path = true})
      .add("latency_spread", &SimOptions::latency_spread,
           {.help = "width of the random factor, of mean 1, by which the latency of each pair of "
                    "peers is multiplied; 0: none",
            .minimum = 0,
            .maximum = 2})
      .add("jitter_ms", &SimOptions::jitter_ms,
           {.help = "each chunk is delayed by up to this long, drawn uniformly; chunks of a link "
                    "stay in order",
            .minimum = 0,
            .maximum = 1e9,
            .unit = "ms"});
}

void add_bandwidth(ParameterSet<SimOptions>& set) {
  set.add("bandwidth_mbit_s", &SimOptions::bandwidth_mbit_s,
          {.help = "bandwidth of every link; 0: unlimited",
           .minimum = 0,
           .maximum = 1e9,
           .unit = "Mbit/s"})
      .add("bandwidth_file", &SimOptions::bandwidth_file,
           {.help = "a table that replaces bandwidth_mbit_s, in the form of latency_file, in "
                    "Mbit/s; 0: unlimited",
            .path = true})
      .add(
          "bandwidth_spread", &SimOptions::bandwidth_spread,
          {.help = "as latency_spread, for the bandwidth of each link", .minimum = 0, .maximum = 2})
      .add("spread", &SimOptions::spread,
           {.help = "distribution of the random factors: log_normal, where the width is the "
                    "standard deviation of the logarithm, or uniform between 1 - width and "
                    "1 + width",
            .choices = {"log_normal", "uniform"}})
      .add("uplink_mbit_s", &SimOptions::uplink_mbit_s,
           {.help = "bandwidth that all outgoing links of a peer or server share, first come first "
                    "served; 0: unlimited",
            .minimum = 0,
            .maximum = 1e9,
            .unit = "Mbit/s"})
      .add("downlink_mbit_s", &SimOptions::downlink_mbit_s,
           {.help = "bandwidth that all incoming links of a peer or server share, first come first "
                    "served; 0: unlimited",
            .minimum = 0,
            .maximum = 1e9,
            .unit = "Mbit/s"});
}

void add_compute_time(ParameterSet<SimOptions>& set) {
  set.add("compute_ms", &SimOptions::compute_ms,
          {.help = "virtual time of a local step", .minimum = 0, .maximum = 1e9, .unit = "ms"})
      .add("sample_ms", &SimOptions::sample_ms,
           {.help = "virtual time of each sample of a batch, in addition to compute_ms",
            .minimum = 0,
            .maximum = 1e9,
            .unit = "ms"})
      .add("compute_spread", &SimOptions::compute_spread,
           {.help = "width (standard deviation of the logarithm) of the log-normal factor, of mean "
                    "1, by which the time of each local step is multiplied; 0: none",
            .minimum = 0,
            .maximum = 2})
      .add("slow_peers", &SimOptions::slow_peers,
           {.help = "number of slow peers: the local steps of peers 0 to slow_peers - 1 take "
                    "slow_factor times as long",
            .minimum = 0,
            .maximum = 65535,
            .unit = "peers"})
      .add("slow_factor", &SimOptions::slow_factor,
           {.help = "factor by which the local steps of slow peers take longer",
            .minimum = 0,
            .maximum = 1e6});
}

struct ExternalOptions {
  std::string file;
};

const ParameterSet<ExternalOptions>& external_parameters() {
  static const auto set = ParameterSet<ExternalOptions>().add(
      "file", &ExternalOptions::file,
      {.help = "the Python file of the task, which `python -m gossamer` loads; the other keys are "
               "the task's own",
       .path = true,
       .local = true});
  return set;
}

std::vector<KindSpec> model_kinds() {
  std::vector<KindSpec> specs = kind_specs(train::models::catalog());
  specs.push_back({kExternalModel, external_parameters().specs(), true});
  return specs;
}

/// What peers learn, as in shared_sections().
std::vector<Section> learning_sections() {
  return {
      {.name = "model",
       .summary = "the model that each peer trains; kind external: that of a task in Python",
       .default_kind = "softmax",
       .catalog = model_kinds,
       .shared = true},
      {.name = "data",
       .summary = "the data set, its shards and its batches",
       .keys = train::shard_parameters().specs(),
       .default_kind = "digits",
       .catalog = [] { return kind_specs(train::datasets::catalog()); },
       .shared = true},
      {.name = "optimizer",
       .summary = "the local optimizer and its step-size schedule",
       .keys = train::schedule_parameters().specs(),
       .default_kind = "sgd",
       .catalog = [] { return kind_specs(train::optimizer_kinds()); },
       .shared = true},
      {.name = "split",
       .summary = "the workers that hold a replica of the model, if one does not hold it whole",
       .keys = train::split_parameters().specs(),
       .shared = true},
      {.name = "privacy",
       .summary = "what others may learn of a peer's single training samples",
       .keys = train::privacy_parameters().specs(),
       .shared = true},
  };
}

/// Those that are the same on all machines, except for keys that name files.
std::vector<Section> shared_sections() {
  return {
      {.name = "run",
       .summary = "number of peers, number of rounds, seed",
       .keys = run_parameters().specs(),
       .shared = true},
      {.name = "topology",
       .summary = "which peers exchange rows, and the weights of the mix",
       .keys = topology::weight_parameters().specs(),
       .default_kind = "ring",
       .catalog = [] { return kind_specs(topology::kinds::catalog()); },
       .shared = true},
      {.name = "algorithm",
       .summary = "the order of local steps and exchanges",
       .keys = policy_parameters().specs(),
       .default_kind = "dpsgd",
       .catalog = [] { return kind_specs(gossip::algorithms::catalog()); },
       .shared = true},
      {.name = "codec",
       .summary = "how rows are encoded for transmission",
       .default_kind = "none",
       .catalog = [] { return kind_specs(gossip::codecs::catalog()); },
       .shared = true},
      {.name = "mixing",
       .summary = "how a mix combines a row with the rows of neighbours",
       .default_kind = "mean",
       .kind_key = "rule",
       .catalog = [] { return kind_specs(gossip::rules::catalog()); },
       .shared = true},
      {.name = "attack",
       .summary = "which peers are hostile, and what they send",
       .keys = attack_parameters().specs(),
       .default_kind = "none",
       .catalog = [] { return kind_specs(gossip::attacks::catalog()); },
       .shared = true},
  };
}

std::vector<Section> make_sections() {
  std::vector<Section> sections = shared_sections();
  std::ranges::move(learning_sections(), std::back_inserter(sections));
  const std::vector<Section> others{
      {.name = "sim",
       .summary = "the simulated network of `gossamer run`",
       .keys = sim_parameters().specs()},
      {.name = "net",
       .summary = "the real network of `gossamer peer`",
       .keys = net::net_parameters().specs()},
      {.name = "local", .summary = "this machine", .keys = local_parameters().specs()},
      {.name = "log", .summary = "what is recorded", .keys = log_parameters().specs()},
      {.name = "checkpoint",
       .summary = "checkpoints, from which --resume restores a run",
       .keys = checkpoint_parameters().specs()},
  };
  sections.insert(sections.end(), others.begin(), others.end());
  return sections;
}

ParameterSet<SimOptions> make_sim_parameters() {
  ParameterSet<SimOptions> set;
  set.add("probe", &SimOptions::probe,
          {.help = "folder of the tables that `gossamer probe` has written: latency, jitter and "
                   "bandwidth of each link, and the bandwidths and step time of each peer; it "
                   "replaces all other keys of this section",
           .path = true});
  add_latency(set);
  add_bandwidth(set);
  add_compute_time(set);
  return set;
}

}  // namespace

const ParameterSet<RunOptions>& run_parameters() {
  static const auto set =
      ParameterSet<RunOptions>()
          .add("peers", &RunOptions::peers,
               {.help = "number of peers, n", .minimum = 1, .maximum = 65535, .unit = "peers"})
          .add("rounds", &RunOptions::rounds,
               {.help = "number of rounds", .minimum = 0, .maximum = 1e12, .unit = "rounds"})
          .add("seed", &RunOptions::seed,
               {.help = "seed of every random number of the run", .minimum = 0})
          .add("init", &RunOptions::init,
               {.help = "initial parameters: the same for all peers, or different for each",
                .choices = {"same", "different"}})
          .add("participants", &RunOptions::participants,
               {.help = "peers that take part in rounds, if not all in all of them: \"0-3\" from "
                        "round 0 on, then \"ROUND: IDS\" for each change"})
          .add("open", &RunOptions::open,
               {.help =
                    "the peers of run.participants begin, also where the run is resumed; others, "
                    "up to run.peers, join while the network runs, and a peer leaves for good "
                    "on SIGUSR1"})
          .add("id", &RunOptions::id,
               {.help = "name of the run and of its folder: letters, digits, . _ -; empty: the "
                        "hash of the shared sections"});
  return set;
}

const ParameterSet<PolicyOptions>& policy_parameters() {
  static const auto set =
      ParameterSet<PolicyOptions>()
          .add("policy", &PolicyOptions::policy,
               {.help = "which rows a mix waits for: sync: the rows of the same round from all "
                        "neighbours; deadline: rows that arrive in time, as agreed by both ends of "
                        "an edge; stale: rows of neighbours that would fall more than staleness "
                        "rounds behind; async: none, the newest rows are used",
                .choices = gossip::policy_names()})
          .add("staleness", &PolicyOptions::staleness,
               {.help = "policy stale: rounds by which a peer may be ahead of a neighbour",
                .minimum = 1,
                .maximum = 1e6,
                .unit = "rounds"})
          .add("slack", &PolicyOptions::slack,
               {.help = "policy deadline: a mix waits as long as rows of neighbours usually take, "
                        "and this fraction of a round longer",
                .minimum = 0,
                .maximum = 0.9,
                .unit = "rounds"})
          .add("largest_value", &PolicyOptions::largest_value,
               {.help = "bound on the magnitude of exchanged values: a peer whose values exceed it "
                        "or are not finite has diverged and stops; a peer that sends such values "
                        "loses its links. The product of two values within the default bound is "
                        "finite",
                .minimum = 1e-30,
                .maximum = 1e37});
  return set;
}

const ParameterSet<AttackOptions>& attack_parameters() {
  static const auto set =
      ParameterSet<AttackOptions>()
          .add("peers", &AttackOptions::peers, {.help = "ids of the hostile peers"})
          .add("fraction", &AttackOptions::fraction,
               {.help = "part of the peers that is hostile, drawn from run.seed, in place of "
                        "attack.peers; 0: attack.peers names them",
                .minimum = 0,
                .maximum = 1})
          .add("from", &AttackOptions::from,
               {.help = "first round of the attack, counted from 0",
                .minimum = 0,
                .maximum = 1e12,
                .unit = "rounds"})
          .add("strength", &AttackOptions::strength,
               {.help = "strength of the attack, whose meaning and published value depend on the "
                        "kind; 0: the published value",
                .minimum = 0,
                .maximum = 1e30})
          .add("line_search", &AttackOptions::line_search,
               {.help = "each message has the strength, found by line search, that moves the "
                        "receiver's mix farthest from that of its honest rows"});
  return set;
}

const ParameterSet<SimOptions>& sim_parameters() {
  static const auto set = make_sim_parameters();
  return set;
}

const ParameterSet<LocalOptions>& local_parameters() {
  static const auto set =
      ParameterSet<LocalOptions>()
          .add("device", &LocalOptions::device,
               {.help = "the device that computes: cpu, cuda (the GPUs of this process), cuda:N "
                        "(one GPU), or auto (GPUs if there are any)"})
          .add("deterministic", &LocalOptions::deterministic,
               {.help = "on a GPU, in a network: train peers one by one, so that results do not "
                        "depend on which peers are ready at the same time"})
          .add("matmul_precision", &LocalOptions::matmul_precision,
               {.help = "on a GPU: what factors of the matrix products of dense layers and of Muon "
                        "are rounded to; sums and parameters are float32",
                .choices = {"float32", "tf32", "bf16"}})
          .add("threads", &LocalOptions::threads,
               {.help = "number of CPU threads; 0: one per core",
                .minimum = 0,
                .maximum = 1024,
                .unit = "threads"})
          .add("out", &LocalOptions::out,
               {.help = "run folder; empty: runs/<run id>", .path = true});
  return set;
}

const ParameterSet<LogOptions>& log_parameters() {
  static const auto set =
      ParameterSet<LogOptions>()
          .add("every", &LogOptions::every,
               {.help = "rounds between records; 0: only the first and the last rounds",
                .minimum = 0,
                .maximum = 1e9,
                .unit = "rounds"})
          .add("last", &LogOptions::last,
               {.help = "how many rounds at the end of the run each have a record: as many as a "
                        "graph has phases show what the peers' models are on average over them",
                .minimum = 1,
                .maximum = 1e9,
                .unit = "rounds"})
          .add("sketch", &LogOptions::sketch,
               {.help = "record a sketch of each row, from which the consensus distance of a "
                        "network is estimated; auto: if the process does not host all peers",
                .choices = {"auto", "on", "off"}});
  return set;
}

const ParameterSet<CheckpointOptions>& checkpoint_parameters() {
  static const auto set =
      ParameterSet<CheckpointOptions>()
          .add("every", &CheckpointOptions::every,
               {.help = "rounds between checkpoints; 0: none",
                .minimum = 0,
                .maximum = 1e9,
                .unit = "rounds"})
          .add("folder", &CheckpointOptions::folder,
               {.help = "folder of the checkpoints; empty: `checkpoints` in the run folder",
                .path = true})
          .add("keep", &CheckpointOptions::keep,
               {.help = "number of newest checkpoints to retain",
                .minimum = 1,
                .maximum = 1e6,
                .unit = "checkpoints"});
  return set;
}

const std::vector<Section>& sections() {
  static const std::vector<Section> all = make_sections();
  return all;
}

std::vector<SectionSpec> section_specs() {
  std::vector<SectionSpec> specs;
  for (const Section& section : sections())
    specs.push_back({section.name, section.summary, section.keys,
                     section.default_kind.empty() ? std::string() : section.kind_key});
  return specs;
}

}  // namespace gossamer::peer
