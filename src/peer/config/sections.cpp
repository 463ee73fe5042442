#include "peer/config/sections.hpp"

#include "gossip/algorithm.hpp"
#include "topology/kind.hpp"
#include "train/dataset.hpp"
#include "train/model.hpp"

namespace gossamer::peer {
namespace {

template <class Kind>
std::vector<KindSpec> kind_specs(const std::vector<Kind>& catalog) {
  std::vector<KindSpec> specs;
  for (const Kind& kind : catalog) specs.push_back({kind.name, kind.parameters});
  return specs;
}

std::vector<Section> make_sections() {
  return {
      {.name = "run",
       .summary = "how many peers, how long, which seed",
       .keys = run_parameters().specs(),
       .shared = true},
      {.name = "topology",
       .summary = "who hears whom, and with which weights",
       .keys = topology::weight_parameters().specs(),
       .default_kind = "ring",
       .catalog = [] { return kind_specs(topology::kinds::catalog()); },
       .shared = true},
      {.name = "algorithm",
       .summary = "the order of local steps and exchanges",
       .keys = exchange_parameters().specs(),
       .default_kind = "dpsgd",
       .catalog = [] { return kind_specs(gossip::algorithms::catalog()); },
       .shared = true},
      {.name = "codec",
       .summary = "what rows travel as",
       .default_kind = "none",
       .catalog = [] { return kind_specs(gossip::codecs::catalog()); },
       .shared = true},
      {.name = "model",
       .summary = "what each peer trains",
       .default_kind = "softmax",
       .catalog = [] { return kind_specs(train::models::catalog()); },
       .shared = true},
      {.name = "data",
       .summary = "the samples, and how they are cut into shards and batches",
       .keys = train::shard_parameters().specs(),
       .default_kind = "digits",
       .catalog = [] { return kind_specs(train::datasets::catalog()); },
       .shared = true},
      {.name = "optimizer",
       .summary = "the local optimizer, and the step size over the local steps",
       .keys = train::schedule_parameters().specs(),
       .default_kind = "sgd",
       .catalog = [] { return kind_specs(train::optimizer_kinds()); },
       .shared = true},
      {.name = "sim",
       .summary = "the virtual network of `gossamer run`",
       .keys = sim_parameters().specs()},
      {.name = "net",
       .summary = "the real network of `gossamer peer`",
       .keys = net::net_parameters().specs()},
      {.name = "local", .summary = "this machine", .keys = local_parameters().specs()},
      {.name = "log", .summary = "what is recorded", .keys = log_parameters().specs()},
      {.name = "checkpoint",
       .summary = "what a run can go on from (--resume)",
       .keys = checkpoint_parameters().specs()},
  };
}

}  // namespace

const ParameterSet<RunOptions>& run_parameters() {
  static const auto set =
      ParameterSet<RunOptions>()
          .add("peers", &RunOptions::peers,
               {.help = "n", .minimum = 1, .maximum = 65535, .unit = "peers"})
          .add("rounds", &RunOptions::rounds,
               {.help = "rounds to run", .minimum = 0, .maximum = 1e12, .unit = "rounds"})
          .add("seed", &RunOptions::seed,
               {.help = "keys every random number of the run", .minimum = 0})
          .add("init", &RunOptions::init,
               {.help = "all peers start from the same parameters, or each from its own",
                .choices = {"same", "different"}})
          .add("id", &RunOptions::id,
               {.help = "names the run and its folder: letters, digits, . _ -; empty: the hash of "
                        "the shared sections"});
  return set;
}

const ParameterSet<ExchangeChoice>& exchange_parameters() {
  static const auto set =
      ParameterSet<ExchangeChoice>()
          .add("policy", &ExchangeChoice::policy,
               {.help = "whom a mix waits for: sync: all neighbours' rows of the round; deadline: "
                        "those that come in time, as "
                        "both ends of an edge agree; stale: neighbours that would be left more "
                        "than staleness rounds behind; "
                        "async: nobody, the newest rows are taken",
                .choices = {"sync", "deadline", "stale", "async"}})
          .add("staleness", &ExchangeChoice::staleness,
               {.help = "of policy stale: how far a peer may be ahead of a neighbour",
                .minimum = 1,
                .maximum = 1e6,
                .unit = "rounds"})
          .add("slack", &ExchangeChoice::slack,
               {.help = "of policy deadline: a mix waits as long as neighbours' rows usually take, "
                        "and this part of a round longer",
                .minimum = 0,
                .maximum = 0.9,
                .unit = "rounds"})
          .add("largest_value", &ExchangeChoice::largest_value,
               {.help = "in magnitude, of what peers tell each other: who comes to larger values, "
                        "or to none that are finite, has "
                        "diverged and stops; who sends such loses its links. The default's "
                        "products are still finite",
                .minimum = 1e-30,
                .maximum = 1e37});
  return set;
}

const ParameterSet<SimOptions>& sim_parameters() {
  static const auto set =
      ParameterSet<SimOptions>()
          .add("latency_ms", &SimOptions::latency_ms,
               {.help = "of every link, one way", .minimum = 0, .maximum = 1e9, .unit = "ms"})
          .add("latency_file", &SimOptions::latency_file,
               {.help = "instead of latency_ms, a square table, line: from, column: to, in ms, of "
                        "numbers parted by blanks or "
                        "commas; of all peers (and servers), or of regions that peers fill in "
                        "blocks of equal size",
                .path = true})
          .add("latency_spread", &SimOptions::latency_spread,
               {.help = "width of the factor, of mean 1, that each pair of peers draws once for "
                        "its latency; 0: none",
                .minimum = 0,
                .maximum = 2})
          .add("jitter_ms", &SimOptions::jitter_ms,
               {.help = "each chunk comes up to so much later, drawn uniformly; the order on a "
                        "link stays",
                .minimum = 0,
                .maximum = 1e9,
                .unit = "ms"})
          .add("bandwidth_mbit_s", &SimOptions::bandwidth_mbit_s,
               {.help = "of every link by itself; 0: without limit",
                .minimum = 0,
                .maximum = 1e9,
                .unit = "Mbit/s"})
          .add("bandwidth_file", &SimOptions::bandwidth_file,
               {.help = "instead of bandwidth_mbit_s, a table as latency_file's, in Mbit/s; 0: "
                        "without limit",
                .path = true})
          .add("bandwidth_spread", &SimOptions::bandwidth_spread,
               {.help = "as latency_spread, of the link's own bandwidth",
                .minimum = 0,
                .maximum = 2})
          .add("spread", &SimOptions::spread,
               {.help = "how links' factors are drawn: log_normal, the width being the logarithm's "
                        "standard deviation, or "
                        "uniform, between 1 - width and 1 + width",
                .choices = {"log_normal", "uniform"}})
          .add("uplink_mbit_s", &SimOptions::uplink_mbit_s,
               {.help = "shared by all links out of a peer or server, first come first served; 0: "
                        "without limit",
                .minimum = 0,
                .maximum = 1e9,
                .unit = "Mbit/s"})
          .add("downlink_mbit_s", &SimOptions::downlink_mbit_s,
               {.help = "shared by all links into a peer or server, first come first served; 0: "
                        "without limit",
                .minimum = 0,
                .maximum = 1e9,
                .unit = "Mbit/s"})
          .add("compute_ms", &SimOptions::compute_ms,
               {.help = "virtual time of one local step",
                .minimum = 0,
                .maximum = 1e9,
                .unit = "ms"})
          .add("sample_ms", &SimOptions::sample_ms,
               {.help = "virtual time of each sample of a batch, beside compute_ms",
                .minimum = 0,
                .maximum = 1e9,
                .unit = "ms"})
          .add("compute_spread", &SimOptions::compute_spread,
               {.help = "width (the logarithm's standard deviation) of the log-normal factor, of "
                        "mean 1, that each local step "
                        "draws for its time; 0: none",
                .minimum = 0,
                .maximum = 2})
          .add("slow_peers", &SimOptions::slow_peers,
               {.help = "peers 0 to slow_peers - 1 take slow_factor times compute_ms for a step",
                .minimum = 0,
                .maximum = 65535,
                .unit = "peers"})
          .add("slow_factor", &SimOptions::slow_factor,
               {.help = "how many times as long a slow peer's step takes",
                .minimum = 0,
                .maximum = 1e6});
  return set;
}

const ParameterSet<LocalOptions>& local_parameters() {
  static const auto set =
      ParameterSet<LocalOptions>()
          .add("device", &LocalOptions::device,
               {.help = "where arithmetic runs: cpu, cuda (this process's GPUs), cuda:N (one), or "
                        "auto (GPUs if there are any)"})
          .add("deterministic", &LocalOptions::deterministic,
               {.help = "on a GPU, in a network: train peers one by one, so that bits do not "
                        "depend on who was ready together"})
          .add("threads", &LocalOptions::threads,
               {.help = "0: one per core", .minimum = 0, .maximum = 1024, .unit = "threads"})
          .add("out", &LocalOptions::out,
               {.help = "run folder; empty: runs/<run id>", .path = true});
  return set;
}

const ParameterSet<LogOptions>& log_parameters() {
  static const auto set =
      ParameterSet<LogOptions>()
          .add("every", &LogOptions::every,
               {.help = "rounds between records; 0: the first and the last only",
                .minimum = 0,
                .maximum = 1e9,
                .unit = "rounds"})
          .add("sketch", &LogOptions::sketch,
               {.help = "log a sketch of each row, from which the consensus distance of a network "
                        "is estimated; auto: where "
                        "a process hosts not all peers",
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
               {.help = "where they are; empty: checkpoints in the run folder", .path = true})
          .add("keep", &CheckpointOptions::keep,
               {.help = "so many of the newest stay",
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
    specs.push_back({section.name, section.summary, section.keys});
  return specs;
}

}  // namespace gossamer::peer
