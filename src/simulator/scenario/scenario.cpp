#include "simulator/scenario/scenario.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "gossip/policy.hpp"
#include "topology/spectrum.hpp"

namespace gossamer::simulator {
namespace {

Error invalid(std::string message) { return {ErrorKind::invalid, std::move(message)}; }

}  // namespace

const std::vector<std::string>& codec_names() {
  static const std::vector<std::string> names{"none", "bf16", "int8"};
  return names;
}

int Scenario::processes() const {
  return placement.empty() ? 0 : *std::ranges::max_element(placement) + 1;
}

std::vector<Fault> Scenario::fault_list() const {
  std::vector<Fault> list;
  for (const std::string& text : faults) list.push_back(parse_fault(text).value());
  return list;
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
  if (scenario.open && scenario.processes() != scenario.peers)
    return invalid("scenario.open: each process has one peer");
  for (const std::string& text : scenario.faults) {
    GOSSAMER_TRY(const Fault fault, parse_fault(text));
    if (scenario.open ? fault.kind == FaultKind::interrupt_all : is_of_open_run(fault.kind))
      return invalid(
          fmt::format("scenario.faults: '{}' does not go with open = {}", text, scenario.open));
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

bool is_symmetric(const topology::MixingSchedule& schedule) {
  for (const topology::MixingSchedule* part : schedule.parts())
    for (int t = 0; t < std::max(part->period(), 1); ++t)
      if (!part->at(static_cast<Round>(t))->symmetric()) return false;
  return true;
}

std::vector<int> Protocol::absent_at_start() const {
  std::vector<int> absent;
  for (int peer = 0; participants().is_open() && peer < participants().peers(); ++peer)
    if (!participants().takes_part(peer, 0)) absent.push_back(peer);
  return absent;
}

Result<Protocol> build_protocol(const Scenario& scenario) {
  Protocol protocol;
  protocol.policy = policy_named(scenario.policy);
  ParameterValues values;
  for (const AlgorithmKind& kind : algorithms::catalog()) {
    if (kind.name != scenario.algorithm) continue;
    for (const ParameterSpec& spec : kind.parameters) {
      if (spec.name == "order") values["order"] = scenario.steps.order;
      if (spec.name == "local_steps")
        values["local_steps"] = static_cast<std::int64_t>(scenario.steps.local_steps);
      if (spec.name == "length") values["length"] = static_cast<std::int64_t>(scenario.length);
    }
  }
  GOSSAMER_TRY(protocol.algorithm, make_algorithm(scenario.algorithm, values));
  const AlgorithmRequirements needs = protocol.algorithm->requirements();
  if (!needs.tolerates_peer_loss && scenario.algorithm != "ad_psgd")
    return invalid(
        fmt::format("scenario.algorithm: the oracle does not know {}", scenario.algorithm));
  topology::WeightOptions weights{.lazy = scenario.lazy};
  if (needs.stochastic == topology::Stochastic::columns) weights.automatic = "out_degree";
  GOSSAMER_TRY(protocol.schedule, topology::make_schedule({scenario.topology,
                                                           {},
                                                           weights,
                                                           {scenario.peers, scenario.seed},
                                                           scenario.participants,
                                                           scenario.open}));
  const bool in_step = protocol.policy == Policy::sync || protocol.policy == Policy::stale;
  if (scenario.open && !(in_step && needs.lockstep && protocol.longest_period() > 0))
    return invalid("scenario.open: goes only with sync and stale, and not with random graphs");
  if (const auto last = protocol.participants().changes().back().first;
      last >= static_cast<Round>(scenario.rounds))
    return invalid(fmt::format("scenario.participants: there is no round {}", last));
  protocol.rows = protocol.algorithm->rows(*protocol.schedule);
  GOSSAMER_TRY(protocol.codec, make_codec(scenario.codec, {}, {scenario.seed}));
  const bool known = scenario.algorithm == "consensus" || scenario.algorithm == "dpsgd" ||
                     scenario.algorithm == "qg_momentum";
  if (scenario.codec != "none" && !(is_lockstep(protocol.policy) && known))
    return invalid("scenario.codec: goes only with sync and with consensus, dpsgd and qg_momentum");
  const bool symmetric = is_symmetric(*protocol.schedule);
  if (policy_conflict(protocol.policy, *protocol.algorithm, *protocol.schedule))
    return invalid(fmt::format("scenario.policy: {} does not run under {}", scenario.algorithm,
                               scenario.policy));
  if (needs_symmetric_matrix(protocol.policy) && !symmetric)
    return invalid(fmt::format("scenario.policy: {} takes a symmetric W", scenario.policy));
  if (!protocol.participants().are_all() && (needs.fixed_matrix || !needs.tolerates_peer_loss))
    return invalid("scenario.participants: the algorithm takes the same peers in all rounds");
  if (needs.fixed_matrix && !(symmetric && protocol.schedule->period() == 1))
    return invalid("scenario.topology: the algorithm takes a symmetric W that never changes");
  if (needs.above > -1 && !scenario.lazy) return invalid("scenario.lazy: the algorithm needs it");
  GOSSAMER_TRY_STATUS(protocol.algorithm->check(*protocol.schedule));
  return protocol;
}

}  // namespace gossamer::simulator
