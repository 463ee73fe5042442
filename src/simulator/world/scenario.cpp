#include "simulator/world/scenario.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/philox.hpp"
#include "base/tokens.hpp"
#include "gossip/engine/exchange_options.hpp"
#include "topology/spectrum.hpp"

namespace gossamer::simulator {
namespace {

constexpr int kMostPeers = 64;
constexpr double kForever = 1e6;  // seconds

Error invalid(std::string message) { return {ErrorKind::invalid, std::move(message)}; }

}  // namespace

const std::vector<std::string>& codec_names() {
  static const std::vector<std::string> names{"none", "bf16", "int8"};
  return names;
}

const std::vector<FaultSpec>& fault_specs() {
  static const std::vector<FaultSpec> specs{
      {FaultKind::crash, "crash", true, false, false, false},
      {FaultKind::vanish, "vanish", true, false, false, false},
      {FaultKind::restart, "restart", true, true, false, false},
      {FaultKind::reboot, "reboot", true, true, false, false},
      {FaultKind::pause, "pause", true, true, false, false},
      {FaultKind::slow, "slow", false, false, false, true},
      {FaultKind::delay, "delay", true, true, true, true},
      {FaultKind::stall, "stall", true, true, true, false},
      {FaultKind::clog, "clog", true, true, true, true},
      {FaultKind::partition, "partition", true, true, false, false},
      {FaultKind::one_way_partition, "one_way_partition", true, true, false, false},
      {FaultKind::cut, "cut", true, false, true, false},
      {FaultKind::corrupt, "corrupt", true, false, true, false},
      {FaultKind::close, "close", true, false, true, false},
      {FaultKind::slow_reader, "slow_reader", true, true, false, true},
      {FaultKind::not_finite, "not_finite", true, false, true, false},
      {FaultKind::clock, "clock", true, false, false, true},
      {FaultKind::failed_write, "failed_write", true, false, false, true},
      {FaultKind::torn_write, "torn_write", true, false, false, true},
      {FaultKind::killed_write, "killed_write", true, true, false, true},
  };
  return specs;
}

const FaultSpec& spec_of(FaultKind kind) {
  return *std::ranges::find(fault_specs(), kind, &FaultSpec::kind);
}

std::string to_string(const Fault& fault) {
  const FaultSpec& spec = spec_of(fault.kind);
  std::string text = fmt::format("{} process={}", spec.name, fault.process);
  if (spec.other) text += fmt::format(" other={}", fault.other);
  if (spec.at) text += fmt::format(" at={}", fault.at);
  if (spec.lasts) text += fmt::format(" lasts={}", fault.lasts);
  if (spec.amount) text += fmt::format(" amount={}", fault.amount);
  return text;
}

Result<Fault> parse_fault(const std::string& text) {
  const auto words = tokens_of(text);
  std::vector<std::string> names;
  for (const FaultSpec& spec : fault_specs()) names.push_back(spec.name);
  const auto spec = words.empty()
                        ? fault_specs().end()
                        : std::ranges::find(fault_specs(), words.front(), &FaultSpec::name);
  if (spec == fault_specs().end())
    return invalid(fmt::format("faults: '{}' does not begin with a kind of fault: {}", text,
                               fmt::join(names, ", ")));
  Fault fault{.kind = spec->kind};
  bool process = false, other = !spec->other, at = !spec->at, lasts = !spec->lasts,
       amount = !spec->amount;
  for (const std::string_view word : std::span(words).subspan(1)) {
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string_view key = word.substr(0, equals),
                           value = word.substr(std::min(equals + 1, word.size()));
    const auto whole = number_in<int>(value);
    const auto real = number_in<double>(value);
    const auto number = [&](bool wanted, bool& given, double& into) {
      if (!wanted || given || !real || !(*real >= 0 && *real <= kForever)) return false;
      into = *real;
      return given = true;
    };
    const auto id = [&](bool wanted, bool& given, int& into) {
      if (!wanted || given || !whole || *whole < 0) return false;
      into = *whole;
      return given = true;
    };
    const bool understood = key == "process"  ? id(true, process, fault.process)
                            : key == "other"  ? id(spec->other, other, fault.other)
                            : key == "at"     ? number(spec->at, at, fault.at)
                            : key == "lasts"  ? number(spec->lasts, lasts, fault.lasts)
                            : key == "amount" ? number(spec->amount, amount, fault.amount)
                                              : false;
    if (!understood)
      return invalid(fmt::format("faults: '{}': '{}' is not understood", text, word));
  }
  if (!process || !other || !at || !lasts || !amount)
    return invalid(fmt::format("faults: '{}' lacks a field of {}", text, spec->name));
  return fault;
}

int Scenario::processes() const {
  return placement.empty() ? 0 : *std::ranges::max_element(placement) + 1;
}

std::vector<Fault> Scenario::fault_list() const {
  std::vector<Fault> list;
  for (const std::string& text : faults) list.push_back(parse_fault(text).value());
  return list;
}

const ParameterSet<Scenario>& scenario_parameters() {
  static const auto set =
      ParameterSet<Scenario>()
          .add("seed", &Scenario::seed, {.help = "keys all random choices", .minimum = 0})
          .add("topology", &Scenario::topology,
               {.help = "a kind of topology, with its default parameters"})
          .add("lazy", &Scenario::lazy, {.help = "(I + W)/2"})
          .add("peers", &Scenario::peers, {.help = "n", .minimum = 2, .maximum = kMostPeers})
          .add("placement", &Scenario::placement, {.help = "the process of each peer"})
          .add("policy", &Scenario::policy,
               {.help = "which neighbours a mix waits for", .choices = policy_names()})
          .add("staleness", &Scenario::staleness,
               {.help = "rounds that a peer may be ahead, under policy stale",
                .minimum = 1,
                .maximum = 1000})
          .add("algorithm", &Scenario::algorithm,
               {.help = "one that mixes, async_push_sum or ad_psgd"})
          .add("order", &Scenario::order,
               {.help = "order of dpsgd and gradient_tracking", .choices = {"atc", "awc"}})
          .add("codec", &Scenario::codec,
               {.help = "what rows are mixed through", .choices = codec_names()})
          .add("local_steps", &Scenario::local_steps,
               {.help = "local steps a round, of algorithms that take several",
                .minimum = 1,
                .maximum = 100})
          .add("rounds", &Scenario::rounds,
               {.help = "rounds to run", .minimum = 1, .maximum = 100000})
          .add("rate", &Scenario::rate, {.help = "step size", .minimum = 0, .maximum = 1})
          .add("length", &Scenario::length, {.help = "d", .minimum = 1, .maximum = 100000})
          .add("chunk_values", &Scenario::chunk_values,
               {.help = "values of a chunk", .minimum = 1, .maximum = 100000})
          .add("window", &Scenario::window,
               {.help = "chunks of a connection that its receiver holds",
                .minimum = 1,
                .maximum = 64})
          .add("buffer_chunks", &Scenario::buffer_chunks,
               {.help = "chunks in flight on a connection", .minimum = 1, .maximum = 1000})
          .add("step_ms", &Scenario::step_ms,
               {.help = "mean time of a local step", .minimum = 0, .maximum = 1e6, .unit = "ms"})
          .add("step_spread", &Scenario::step_spread,
               {.help = "spread of step times, log-normal", .minimum = 0, .maximum = 1})
          .add("latency_ms", &Scenario::latency_ms,
               {.help = "latency of every connection, one way",
                .minimum = 0,
                .maximum = 1e6,
                .unit = "ms"})
          .add("jitter_ms", &Scenario::jitter_ms,
               {.help = "chunks arrive up to so much later",
                .minimum = 0,
                .maximum = 1e6,
                .unit = "ms"})
          .add("loss", &Scenario::loss,
               {.help = "probability that a packet is lost; it is then sent again",
                .minimum = 0,
                .maximum = 0.3})
          .add("duplication", &Scenario::duplication,
               {.help = "probability that a packet travels twice", .minimum = 0, .maximum = 0.5})
          .add("bandwidth_mbit_s", &Scenario::bandwidth_mbit_s,
               {.help = "bandwidth of every connection; 0: without limit",
                .minimum = 0,
                .maximum = 1e6,
                .unit = "Mbit/s"})
          .add("failure_timeout", &Scenario::failure_timeout,
               {.help = "time without a byte after which a link is lost",
                .minimum = 0.01,
                .maximum = 1000,
                .unit = "s"})
          .add("reconnect_delay", &Scenario::reconnect_delay,
               {.help = "longest pause before a lost connection is redialled",
                .minimum = 0.001,
                .maximum = 1000,
                .unit = "s"})
          .add("checkpoint_every", &Scenario::checkpoint_every,
               {.help = "rounds between two checkpoints", .minimum = 1, .maximum = 100000})
          .add("faults", &Scenario::faults, {.help = "the faults and their times"});
  return set;
}

ParameterValues values_of(const Scenario& s) {
  const auto whole = [](auto number) { return static_cast<std::int64_t>(number); };
  return {{"seed", whole(s.seed)},
          {"topology", s.topology},
          {"lazy", s.lazy},
          {"peers", whole(s.peers)},
          {"placement", std::vector<std::int64_t>(s.placement.begin(), s.placement.end())},
          {"policy", s.policy},
          {"staleness", whole(s.staleness)},
          {"algorithm", s.algorithm},
          {"order", s.order},
          {"codec", s.codec},
          {"local_steps", whole(s.local_steps)},
          {"rounds", whole(s.rounds)},
          {"rate", s.rate},
          {"length", whole(s.length)},
          {"chunk_values", whole(s.chunk_values)},
          {"window", whole(s.window)},
          {"buffer_chunks", whole(s.buffer_chunks)},
          {"step_ms", s.step_ms},
          {"step_spread", s.step_spread},
          {"latency_ms", s.latency_ms},
          {"jitter_ms", s.jitter_ms},
          {"loss", s.loss},
          {"duplication", s.duplication},
          {"bandwidth_mbit_s", s.bandwidth_mbit_s},
          {"failure_timeout", s.failure_timeout},
          {"reconnect_delay", s.reconnect_delay},
          {"checkpoint_every", whole(s.checkpoint_every)},
          {"faults", s.faults}};
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
  const ParameterValues values = values_of(scenario);
  std::string text;
  for (const ParameterSpec& spec : scenario_parameters().specs())
    text += fmt::format("{} = {}\n", spec.name, std::visit(Write{}, values.at(spec.name)));
  return text;
}

Result<Scenario> scenario_of(const ParameterValues& values) {
  GOSSAMER_TRY(const Scenario scenario, scenario_parameters().read("scenario", values));
  if (static_cast<int>(scenario.placement.size()) != scenario.peers)
    return invalid(fmt::format("scenario.placement: {} entries for {} peers",
                               scenario.placement.size(), scenario.peers));
  std::vector<int> processes_used = scenario.placement;
  std::ranges::sort(processes_used);
  processes_used.erase(std::ranges::unique(processes_used).begin(), processes_used.end());
  for (std::size_t k = 0; k < processes_used.size(); ++k)
    if (processes_used[k] != static_cast<int>(k))
      return invalid("scenario.placement: processes are numbered from 0 without a gap");
  for (const std::string& text : scenario.faults) {
    GOSSAMER_TRY(const Fault fault, parse_fault(text));
    const auto processes = static_cast<int>(processes_used.size());
    const bool divides =
        fault.kind == FaultKind::partition || fault.kind == FaultKind::one_way_partition;
    const bool itself = spec_of(fault.kind).other && fault.other == fault.process;
    if (fault.process >= processes - (divides ? 1 : 0) || fault.other >= processes || itself)
      return invalid(
          fmt::format("scenario.faults: '{}': processes are 0 to {}, a fault between two takes "
                      "two, and a partition leaves one "
                      "beyond",
                      text, processes - 1));
  }
  auto protocol = build_protocol(scenario);
  if (!protocol.ok()) return protocol.error();
  return scenario;
}

Result<Protocol> build_protocol(const Scenario& scenario) {
  Protocol protocol;
  protocol.policy = policy_named(scenario.policy);
  ParameterValues values;
  for (const AlgorithmKind& kind : algorithms::catalog()) {
    if (kind.name != scenario.algorithm) continue;
    for (const ParameterSpec& spec : kind.parameters) {
      if (spec.name == "order") values["order"] = scenario.order;
      if (spec.name == "local_steps")
        values["local_steps"] = static_cast<std::int64_t>(scenario.local_steps);
      if (spec.name == "length") values["length"] = static_cast<std::int64_t>(scenario.length);
    }
  }
  GOSSAMER_TRY(protocol.algorithm, make_algorithm(scenario.algorithm, values));
  const AlgorithmRequirements needs = protocol.algorithm->requirements();
  if (!needs.tolerates_peer_loss && scenario.algorithm != "ad_psgd")
    return invalid(
        fmt::format("scenario.algorithm: the oracle does not know {}", scenario.algorithm));
  topology::WeightOptions weights{.lazy = scenario.lazy};
  if (needs.column_stochastic) weights.automatic = "out_degree";
  GOSSAMER_TRY(
      protocol.schedule,
      topology::make_schedule({scenario.topology, {}, weights, {scenario.peers, scenario.seed}}));
  protocol.rows = protocol.algorithm->rows(*protocol.schedule);
  GOSSAMER_TRY(protocol.codec, make_codec(scenario.codec, {}, {scenario.seed}));
  const bool known = scenario.algorithm == "consensus" || scenario.algorithm == "dpsgd" ||
                     scenario.algorithm == "qg_momentum";
  if (scenario.codec != "none" && (protocol.policy != Policy::sync || !known))
    return invalid("scenario.codec: goes only with sync and with consensus, dpsgd and qg_momentum");
  bool symmetric = true;
  for (int t = 0; t < std::max(protocol.schedule->period(), 1); ++t)
    symmetric = symmetric && protocol.schedule->at(static_cast<Round>(t))->symmetric();
  const bool mixes = std::ranges::any_of(protocol.rows, &RowSpec::mixed);
  const bool conserves_sums =
      mixes && std::any_of(protocol.rows.begin() + 1, protocol.rows.end(),
                           [](const RowSpec& row) { return row.conserved_sum; });
  if ((protocol.policy == Policy::stale || protocol.policy == Policy::async) && conserves_sums)
    return invalid("scenario.policy: the algorithm keeps sums, which late rows would break");
  if (protocol.policy != Policy::sync && (needs.column_stochastic ? mixes : !needs.mixing_matrix))
    return invalid(fmt::format("scenario.policy: {} goes only with sync", scenario.algorithm));
  if (protocol.policy == Policy::deadline && (needs.fixed_matrix || !symmetric))
    return invalid(
        "scenario.policy: deadline takes a symmetric W, and an algorithm that tolerates a changed "
        "one");
  if (needs.fixed_matrix && !(symmetric && protocol.schedule->period() == 1))
    return invalid("scenario.topology: the algorithm takes a symmetric W that never changes");
  if (needs.above > -1 && !scenario.lazy) return invalid("scenario.lazy: the algorithm needs it");
  GOSSAMER_TRY_STATUS(protocol.algorithm->check(*protocol.schedule));
  return protocol;
}

}  // namespace gossamer::simulator
