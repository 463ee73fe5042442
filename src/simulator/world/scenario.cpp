#include "simulator/world/scenario.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/philox.hpp"
#include "base/words.hpp"
#include "gossip/engine/exchange_options.hpp"
#include "topology/spectrum.hpp"

namespace gossamer::gossip::sim {
namespace {

constexpr int kMostPeers = 64;
constexpr double kForever = 1e6;  // seconds

Error invalid(std::string message) { return {ErrorKind::invalid, std::move(message)}; }

}  // namespace

const std::vector<std::string>& codec_names() {
  static const std::vector<std::string> names{"none", "bf16", "int8"};
  return names;
}

const std::vector<FaultForm>& fault_forms() {
  static const std::vector<FaultForm> forms{
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
      {FaultKind::deafness, "deafness", true, true, false, false},
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
  return forms;
}

const FaultForm& form_of(FaultKind kind) {
  return *std::ranges::find(fault_forms(), kind, &FaultForm::kind);
}

std::string to_string(const Fault& fault) {
  const FaultForm& form = form_of(fault.kind);
  std::string text = fmt::format("{} process={}", form.name, fault.process);
  if (form.other) text += fmt::format(" other={}", fault.other);
  if (form.at) text += fmt::format(" at={}", fault.at);
  if (form.lasts) text += fmt::format(" lasts={}", fault.lasts);
  if (form.amount) text += fmt::format(" amount={}", fault.amount);
  return text;
}

Result<Fault> parse_fault(const std::string& text) {
  const auto words = words_of(text);
  std::vector<std::string> names;
  for (const FaultForm& form : fault_forms()) names.push_back(form.name);
  const auto form = words.empty()
                        ? fault_forms().end()
                        : std::ranges::find(fault_forms(), words.front(), &FaultForm::name);
  if (form == fault_forms().end())
    return invalid(
        fmt::format("faults: '{}' begins with none of: {}", text, fmt::join(names, ", ")));
  Fault fault{.kind = form->kind};
  bool process = false, other = !form->other, at = !form->at, lasts = !form->lasts,
       amount = !form->amount;
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
                            : key == "other"  ? id(form->other, other, fault.other)
                            : key == "at"     ? number(form->at, at, fault.at)
                            : key == "lasts"  ? number(form->lasts, lasts, fault.lasts)
                            : key == "amount" ? number(form->amount, amount, fault.amount)
                                              : false;
    if (!understood)
      return invalid(fmt::format("faults: '{}': '{}' is not understood", text, word));
  }
  if (!process || !other || !at || !lasts || !amount)
    return invalid(fmt::format("faults: '{}' leaves out what {} takes", text, form->name));
  return fault;
}

int Scenario::processes() const { return homes.empty() ? 0 : *std::ranges::max_element(homes) + 1; }

std::vector<Fault> Scenario::fault_list() const {
  std::vector<Fault> list;
  for (const std::string& text : faults) list.push_back(parse_fault(text).value());
  return list;
}

const ParameterSet<Scenario>& scenario_parameters() {
  static const auto set =
      ParameterSet<Scenario>()
          .add("seed", &Scenario::seed, {.help = "keys all that is left to chance", .minimum = 0})
          .add("topology", &Scenario::topology,
               {.help = "a kind of topology, with its default parameters"})
          .add("lazy", &Scenario::lazy, {.help = "(I + W)/2"})
          .add("peers", &Scenario::peers, {.help = "n", .minimum = 2, .maximum = kMostPeers})
          .add("homes", &Scenario::homes, {.help = "by peer: its process"})
          .add("policy", &Scenario::policy,
               {.help = "whom a mix waits for", .choices = policy_names()})
          .add("staleness", &Scenario::staleness,
               {.help = "of policy stale", .minimum = 1, .maximum = 1000})
          .add("algorithm", &Scenario::algorithm,
               {.help = "one that mixes, async_push_sum or ad_psgd"})
          .add("order", &Scenario::order,
               {.help = "of dpsgd and gradient_tracking", .choices = {"atc", "awc"}})
          .add("codec", &Scenario::codec,
               {.help = "that rows are mixed through", .choices = codec_names()})
          .add("local_steps", &Scenario::local_steps,
               {.help = "of those that take several", .minimum = 1, .maximum = 100})
          .add("rounds", &Scenario::rounds,
               {.help = "rounds to run", .minimum = 1, .maximum = 100000})
          .add("rate", &Scenario::rate, {.help = "step size", .minimum = 0, .maximum = 1})
          .add("length", &Scenario::length, {.help = "d", .minimum = 1, .maximum = 100000})
          .add("chunk_values", &Scenario::chunk_values,
               {.help = "values of a chunk", .minimum = 1, .maximum = 100000})
          .add(
              "window", &Scenario::window,
              {.help = "chunks that a receiver holds of a connection", .minimum = 1, .maximum = 64})
          .add("buffer_chunks", &Scenario::buffer_chunks,
               {.help = "chunks on their way on a connection", .minimum = 1, .maximum = 1000})
          .add("step_ms", &Scenario::step_ms,
               {.help = "of a local step, the mean", .minimum = 0, .maximum = 1e6, .unit = "ms"})
          .add("step_spread", &Scenario::step_spread,
               {.help = "of step times, log-normal", .minimum = 0, .maximum = 1})
          .add("latency_ms", &Scenario::latency_ms,
               {.help = "of every connection, one way", .minimum = 0, .maximum = 1e6, .unit = "ms"})
          .add("jitter_ms", &Scenario::jitter_ms,
               {.help = "chunks come up to so much later",
                .minimum = 0,
                .maximum = 1e6,
                .unit = "ms"})
          .add("loss", &Scenario::loss,
               {.help = "part of the packets that are lost, and sent again",
                .minimum = 0,
                .maximum = 0.3})
          .add("duplication", &Scenario::duplication,
               {.help = "part of the packets that travel twice", .minimum = 0, .maximum = 0.5})
          .add("bandwidth_mbit_s", &Scenario::bandwidth_mbit_s,
               {.help = "of every connection; 0: without limit",
                .minimum = 0,
                .maximum = 1e6,
                .unit = "Mbit/s"})
          .add(
              "silence", &Scenario::silence,
              {.help = "after which a peer is lost", .minimum = 0.01, .maximum = 1000, .unit = "s"})
          .add("call_again", &Scenario::call_again,
               {.help = "pause before a lost connection is called again, at most",
                .minimum = 0.001,
                .maximum = 1000,
                .unit = "s"})
          .add("checkpoint_every", &Scenario::checkpoint_every,
               {.help = "rounds after which processes that need it write a checkpoint",
                .minimum = 1,
                .maximum = 100000})
          .add("faults", &Scenario::faults, {.help = "what goes wrong, and when"});
  return set;
}

ParameterValues values_of(const Scenario& s) {
  const auto whole = [](auto number) { return static_cast<std::int64_t>(number); };
  return {{"seed", whole(s.seed)},
          {"topology", s.topology},
          {"lazy", s.lazy},
          {"peers", whole(s.peers)},
          {"homes", std::vector<std::int64_t>(s.homes.begin(), s.homes.end())},
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
          {"silence", s.silence},
          {"call_again", s.call_again},
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
  if (static_cast<int>(scenario.homes.size()) != scenario.peers)
    return invalid(fmt::format("scenario.homes: {} processes for {} peers", scenario.homes.size(),
                               scenario.peers));
  std::vector<int> homes = scenario.homes;
  std::ranges::sort(homes);
  homes.erase(std::ranges::unique(homes).begin(), homes.end());
  for (std::size_t k = 0; k < homes.size(); ++k)
    if (homes[k] != static_cast<int>(k))
      return invalid("scenario.homes: processes are numbered from 0 without a gap");
  for (const std::string& text : scenario.faults) {
    GOSSAMER_TRY(const Fault fault, parse_fault(text));
    const auto processes = static_cast<int>(homes.size());
    const bool parts = fault.kind == FaultKind::partition || fault.kind == FaultKind::deafness;
    const bool itself = form_of(fault.kind).other && fault.other == fault.process;
    if (fault.process >= processes - (parts ? 1 : 0) || fault.other >= processes || itself)
      return invalid(
          fmt::format("scenario.faults: '{}': there are processes 0 to {}, another one is not "
                      "itself, and nobody is "
                      "beyond the last",
                      text, processes - 1));
  }
  auto parts = build(scenario);
  if (!parts.ok()) return parts.error();
  return scenario;
}

Result<Parts> build(const Scenario& scenario) {
  Parts parts;
  parts.policy = policy_named(scenario.policy);
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
  GOSSAMER_TRY(parts.algorithm, make_algorithm(scenario.algorithm, values));
  const AlgorithmNeeds needs = parts.algorithm->needs();
  if (!needs.tolerates_peer_loss && scenario.algorithm != "ad_psgd")
    return invalid(fmt::format("scenario.algorithm: what {} does is not what the oracle knows",
                               scenario.algorithm));
  topology::WeightOptions weights{.lazy = scenario.lazy};
  if (needs.only_columns) weights.automatic = "out_degree";
  GOSSAMER_TRY(
      parts.schedule,
      topology::make_schedule({scenario.topology, {}, weights, {scenario.peers, scenario.seed}}));
  parts.rows = parts.algorithm->rows(*parts.schedule);
  GOSSAMER_TRY(parts.codec, make_codec(scenario.codec, {}, {scenario.seed}));
  const bool known = scenario.algorithm == "consensus" || scenario.algorithm == "dpsgd" ||
                     scenario.algorithm == "qg_momentum";
  if (scenario.codec != "none" && (parts.policy != Policy::sync || !known))
    return invalid("scenario.codec: goes with sync and with consensus, dpsgd and qg_momentum");
  bool symmetric = true;
  for (int t = 0; t < std::max(parts.schedule->period(), 1); ++t)
    symmetric = symmetric && parts.schedule->at(static_cast<Round>(t))->symmetric();
  const bool mixes = std::ranges::any_of(parts.rows, &RowSpec::mixed);
  const bool keeps_sums =
      mixes && std::any_of(parts.rows.begin() + 1, parts.rows.end(),
                           [](const RowSpec& row) { return row.conserved_sum; });
  if ((parts.policy == Policy::stale || parts.policy == Policy::async) && keeps_sums)
    return invalid("scenario.policy: the algorithm keeps sums, which late rows would break");
  if (parts.policy != Policy::sync && (needs.only_columns ? mixes : !needs.mixing_matrix))
    return invalid(fmt::format("scenario.policy: {} goes with sync", scenario.algorithm));
  if (parts.policy == Policy::deadline && (needs.fixed_matrix || !symmetric))
    return invalid(
        "scenario.policy: deadline takes a symmetric W, and an algorithm that bears a changed one");
  if (needs.fixed_matrix && !(symmetric && parts.schedule->period() == 1))
    return invalid("scenario.topology: the algorithm takes a symmetric W that stays the same");
  if (needs.above > -1 && !scenario.lazy)
    return invalid("scenario.lazy: the algorithm asks for it");
  GOSSAMER_TRY_STATUS(parts.algorithm->check(*parts.schedule));
  return parts;
}

}  // namespace gossamer::gossip::sim
