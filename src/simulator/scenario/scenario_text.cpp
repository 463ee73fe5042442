// The text of scenarios: their parameters with ranges, and their values.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>

#include "gossip/policy.hpp"
#include "simulator/scenario/scenario.hpp"

namespace gossamer::simulator {

namespace {

constexpr int kMostPeers = 64;

/// What the peers do.
void declare_protocol(ParameterSet<Scenario>& set) {
  set.add("seed", &Scenario::seed, {.help = "keys all random choices", .minimum = 0})
      .add("topology", &Scenario::topology,
           {.help = "a kind of topology, with its default parameters"})
      .add("lazy", &Scenario::lazy, {.help = "(I + W)/2"})
      .add("peers", &Scenario::peers, {.help = "n", .minimum = 1, .maximum = kMostPeers})
      .add("participants", &Scenario::participants,
           {.help = "peers that take part in rounds, if not all in all of them"})
      .add("open", &Scenario::open,
           {.help = "peers join and leave when they want: faults arrive and leave"})
      .add("placement", &Scenario::placement, {.help = "the process of each peer"})
      .add("policy", &Scenario::policy,
           {.help = "which neighbours a mix waits for", .choices = policy_names()})
      .add("staleness", &Scenario::staleness,
           {.help = "rounds that a peer may be ahead, under policy stale",
            .minimum = 1,
            .maximum = 1000})
      .add("algorithm", &Scenario::algorithm, {.help = "one that mixes, async_push_sum or ad_psgd"})
      .add("order", &Scenario::steps, &LocalSteps::order,
           {.help = "order of dpsgd and gradient_tracking", .choices = {"atc", "awc"}})
      .add("codec", &Scenario::codec,
           {.help = "what rows are mixed through", .choices = codec_names()})
      .add("local_steps", &Scenario::steps, &LocalSteps::local_steps,
           {.help = "local steps a round, of algorithms that take several",
            .minimum = 1,
            .maximum = 100})
      .add("rounds", &Scenario::rounds, {.help = "rounds to run", .minimum = 1, .maximum = 100000})
      .add("rate", &Scenario::steps, &LocalSteps::rate,
           {.help = "step size", .minimum = 0, .maximum = 1})
      .add("length", &Scenario::length, {.help = "d", .minimum = 1, .maximum = 100000})
      .add("chunk_values", &Scenario::chunk_values,
           {.help = "values of a chunk", .minimum = 1, .maximum = 100000});
}

/// How long steps and messages take, and what connections are like.
void declare_times(ParameterSet<Scenario>& set) {
  set.add("window", &Scenario::network, &NetworkConditions::window,
          {.help = "chunks of a connection that its receiver holds", .minimum = 1, .maximum = 64})
      .add("buffer_chunks", &Scenario::network, &NetworkConditions::buffer_chunks,
           {.help = "chunks in flight on a connection", .minimum = 1, .maximum = 1000})
      .add("step_ms", &Scenario::steps, &LocalSteps::step_ms,
           {.help = "mean time of a local step", .minimum = 0, .maximum = 1e6, .unit = "ms"})
      .add("step_spread", &Scenario::steps, &LocalSteps::step_spread,
           {.help = "spread of step times, log-normal", .minimum = 0, .maximum = 1})
      .add("latency_ms", &Scenario::network, &NetworkConditions::latency_ms,
           {.help = "latency of every connection, one way",
            .minimum = 0,
            .maximum = 1e6,
            .unit = "ms"})
      .add(
          "jitter_ms", &Scenario::network, &NetworkConditions::jitter_ms,
          {.help = "chunks arrive up to so much later", .minimum = 0, .maximum = 1e6, .unit = "ms"})
      .add("loss", &Scenario::network, &NetworkConditions::loss,
           {.help = "probability that a packet is lost; it is then sent again",
            .minimum = 0,
            .maximum = 0.3})
      .add("duplication", &Scenario::network, &NetworkConditions::duplication,
           {.help = "probability that a packet travels twice", .minimum = 0, .maximum = 0.5})
      .add("bandwidth_mbit_s", &Scenario::network, &NetworkConditions::bandwidth_mbit_s,
           {.help = "bandwidth of every connection; 0: without limit",
            .minimum = 0,
            .maximum = 1e6,
            .unit = "Mbit/s"})
      .add("failure_timeout", &Scenario::network, &NetworkConditions::failure_timeout,
           {.help = "time without a byte after which a link is lost",
            .minimum = 0.01,
            .maximum = 1000,
            .unit = "s"})
      .add("reconnect_delay", &Scenario::network, &NetworkConditions::reconnect_delay,
           {.help = "longest pause before a lost connection is redialled",
            .minimum = 0.001,
            .maximum = 1000,
            .unit = "s"});
}

}  // namespace

const ParameterSet<Scenario>& scenario_parameters() {
  static const auto set = [] {
    ParameterSet<Scenario> parameters;
    declare_protocol(parameters);
    declare_times(parameters);
    parameters
        .add("checkpoint_every", &Scenario::checkpoint_every,
             {.help = "rounds between two checkpoints", .minimum = 1, .maximum = 100000})
        .add("faults", &Scenario::faults, {.help = "the faults and their times"});
    return parameters;
  }();
  return set;
}

std::string to_text(const Scenario& scenario) {
  struct Write {
    std::string operator()(bool value) const { return value ? "true" : "false"; }
    std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
    std::string operator()(double value) const {
      const std::string text = fmt::format("{}", value);
      return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
    }
    std::string operator()(const std::string& value) const { return fmt::format("\"{}\"", value); }
    std::string operator()(const std::vector<std::int64_t>& value) const {
      return fmt::format("[{}]", fmt::join(value, ", "));
    }
    std::string operator()(const std::vector<std::string>& value) const {
      std::string text = "[";
      for (const std::string& item : value) text += fmt::format("\n  \"{}\",", item);
      return text + (value.empty() ? "]" : "\n]");
    }
  };
  const ParameterValues values = scenario_parameters().values(scenario);
  std::string text;
  for (const ParameterSpec& spec : scenario_parameters().specs())
    text += fmt::format("{} = {}\n", spec.name, std::visit(Write{}, values.at(spec.name)));
  return text;
}

}  // namespace gossamer::simulator
