#include "peer/setup/setup_checks.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "gossip/policy.hpp"
#include "peer/setup/virtual_network.hpp"
#include "topology/krylov.hpp"
#include "topology/spectrum.hpp"

namespace gossamer::peer {
namespace {

/// All eigenvalues of a static symmetric W exceed `above`.
Status check_eigenvalues(const Setup& setup, double above) {
  constexpr double kRounding = 1e-9;
  if (above <= -1 || setup.config.run.peers < 2) return {};
  const auto ends = topology::symmetric_ends(*setup.schedule->at(0), setup.schedule->lattice());
  if (!ends || ends->low > above + kRounding) return {};
  return invalid_error(
      fmt::format("topology.lazy: '{}' needs a W whose eigenvalues are above {:.3f}, and the "
                  "lowest eigenvalue of '{}' with {} weights is {:.3f}; set topology.lazy = true",
                  setup.config.algorithm.kind, above, setup.config.topology.kind,
                  setup.report().weights, ends->low));
}

/// What an open run needs beside that: neighbours that keep in step.
Status check_open(const Config& config, const topology::MixingSchedule& schedule) {
  const gossip::Policy policy = config.exchange.kind();
  if (policy != gossip::Policy::sync && policy != gossip::Policy::stale)
    return invalid_error(fmt::format(
        "run.open: under '{}' neighbours may be any number of rounds apart, so no round "
        "is known from which on others take part; set algorithm.policy = sync or stale",
        config.exchange.policy));
  if (schedule.longest_period() == 0)
    return invalid_error(
        fmt::format("run.open: neighbours on '{}', whose rounds are drawn, may be any number of "
                    "rounds apart; choose a topology with a period (ring, base, exponential)",
                    config.topology.kind));
  if (config.net.on_loss != "continue")
    return invalid_error("run.open: needs net.on_loss = continue");
  if (config.mixing.kind != "mean")
    return invalid_error("run.open: goes with mixing.rule = mean only");
  if (!config.attack.options.peers.empty())
    return invalid_error("run.open: goes with attack.kind = none only");
  return {};
}

/// Peers can join and leave where the algorithm mixes and tolerates the loss of peers.
Status check_participants(const Config& config, const gossip::AlgorithmRequirements& needs,
                          const topology::Participants& participants) {
  if (participants.are_all()) return {};
  if (!needs.mixing_matrix || !needs.tolerates_peer_loss || needs.fixed_matrix || !needs.lockstep)
    return invalid_error(fmt::format(
        "run.participants: '{}' needs the same peers in all rounds; choose an algorithm that only "
        "mixes, with any W (dpsgd, gradient_tracking, push_sum, consensus)",
        config.algorithm.kind));
  if (const auto last = participants.changes().back().first; last >= config.run.rounds)
    return invalid_error(
        fmt::format("run.participants: there is no round {}: run.rounds = {}, so the last round is "
                    "{}",
                    last, config.run.rounds, config.run.rounds == 0 ? 0 : config.run.rounds - 1));
  return {};
}

/// A program that hands values over to average needs a round that is their average.
Status check_averages(const gossip::Algorithm& algorithm, const std::string& name) {
  if (!algorithm.requirements().averages) {
    std::string names;
    for (const gossip::AlgorithmKind& kind : gossip::algorithms::catalog())
      if (const auto made = kind.make({}); made.ok() && made.value()->requirements().averages)
        names += (names.empty() ? "" : ", ") + kind.name;
    return invalid_error(
        fmt::format("algorithm.kind: a round of '{}', as it is configured, is no average of the "
                    "values that it was given; choose one of {}, with their default order",
                    name, names));
  }
  if (algorithm.steps_per_round() == 1) return {};
  return invalid_error(
      fmt::format("algorithm.local_steps: {} steps make a round, and an averager makes one; set "
                  "algorithm.local_steps = 1",
                  algorithm.steps_per_round()));
}

/// The reason, and settings that would work.
std::string explain(gossip::PolicyConflict conflict, const std::string& algorithm) {
  using enum gossip::PolicyConflict;
  switch (conflict) {
    case no_mixing:
      return fmt::format(
          "a policy applies to mixing, and '{}' does not mix; set algorithm.policy = sync, or "
          "choose an algorithm that mixes (dpsgd)",
          algorithm);
    case conserved_sums:
      return fmt::format(
          "'{}' conserves sums over the peers, and late or missing rows would break them; set "
          "algorithm.policy = sync, or choose an algorithm without such sums (dpsgd)",
          algorithm);
    case fixed_matrix:
      return fmt::format(
          "'{}' needs a W that is the same in every round, and a deadline changes it; set "
          "algorithm.policy = sync, or choose an algorithm that accepts any W (dpsgd, "
          "gradient_tracking)",
          algorithm);
    case synchronous: break;
  }
  return fmt::format(
      "'{}' needs all rows of the same round; set algorithm.policy = sync, or choose an algorithm "
      "that accepts late rows (dpsgd)",
      algorithm);
}

/// Checks what only the program can say: its samples, its buffers and its state.
Status check_program(const Setup& setup, const Workload& external) {
  const Config& config = setup.config;
  const WorkloadSpec& spec = external.spec();
  const std::string& name = config.algorithm.kind;
  if (config.shards.weights != "peers" && external.own_shards().empty())
    return invalid_error(
        "data.weights: the program does not say how many samples each peer has: give samples or "
        "moments (of gossamer.torch.Optimizer or Task, or a method of the trainer), or set "
        "data.weights = peers");
  if (setup.algorithm->requirements().sends_gradients && spec.has_buffers)
    return invalid_error(
        fmt::format("buffers: '{}' sends gradients, and buffers have none, so they cannot be "
                    "mixed; choose buffers='keep'",
                    name));
  if (spec.averages) GOSSAMER_TRY_STATUS(check_averages(*setup.algorithm, name));
  if (config.checkpoint.every > 0 && !spec.saves_state)
    return invalid_error(
        "checkpoint.every: a checkpoint would lack the task's own state; give the task the methods "
        "state and load_state, or set checkpoint.every = 0 (a process that restarts takes the "
        "parameters of a neighbour)");
  return {};
}

}  // namespace

Status check_algorithm(const Config& config, const gossip::Algorithm& algorithm,
                       const topology::MixingSchedule& schedule) {
  using topology::Stochastic;
  const gossip::AlgorithmRequirements needs = algorithm.requirements();
  const std::string& name = config.algorithm.kind;
  if (const auto conflict = gossip::policy_conflict(config.exchange.kind(), algorithm, schedule))
    return invalid_error(fmt::format("algorithm.policy: {}", explain(*conflict, name)));
  if (schedule.weighing().only_columns() && needs.stochastic != Stochastic::columns &&
      needs.mixing_matrix)
    return invalid_error(
        fmt::format("topology.weights: with out_degree only the columns of W sum to 1, and '{}' "
                    "does not correct for that; choose other weights (auto), or algorithm.kind = "
                    "push_sum or push_pull",
                    name));
  if (schedule.weighing().only_rows() && needs.stochastic != Stochastic::rows &&
      needs.mixing_matrix)
    return invalid_error(fmt::format(
        "topology.weights: with in_degree only the rows of W sum to 1, so mixing moves the mean of "
        "the peers, and '{}' relies on that mean; choose other weights, a topology for which auto "
        "means others, or algorithm.kind = dpsgd",
        name));
  GOSSAMER_TRY_STATUS(check_participants(config, needs, schedule.participants()));
  if (config.run.open) GOSSAMER_TRY_STATUS(check_open(config, schedule));
  if (config.run.init == "different" && needs.common_start)
    return invalid_error(
        fmt::format("run.init: '{}' needs the same initial parameters at all peers; set run.init = "
                    "same, or choose an algorithm that mixes (dpsgd)",
                    name));
  return algorithm.check(schedule);
}

Status check_external(const Setup& setup, const Workload* external) {
  const Config& config = setup.config;
  const std::string &kind = config.model.kind, &name = config.algorithm.kind;
  if (external == nullptr && kind == kExternalModel) {
    const auto file = config.model.values.find("file");
    const bool named =
        file != config.model.values.end() && file->second != ParameterValue(std::string());
    return invalid_error(fmt::format(
        "model.kind: 'external' is the model of a task in Python, which this program cannot load: "
        "{}start the run with `python -m gossamer` in place of `gossamer`, or choose a model of "
        "`gossamer list`",
        named ? "" : "name the task's file in model.file, and "));
  }
  if (external == nullptr) return {};
  const bool recorded = external->spec().recorded;
  if (kind != kExternalModel)
    return recorded ? Status()
                    : invalid_error(fmt::format(
                          "model.kind: '{}' is a model of gossamer's own; set model.kind = "
                          "external to train the program's model",
                          kind));
  const gossip::AlgorithmRequirements needs = setup.algorithm->requirements();
  if (!needs.trainer)
    return invalid_error(
        fmt::format("algorithm.kind: '{}' trains nothing, so it takes no optimizer of the "
                    "program's; choose an algorithm that does (dpsgd, gradient_tracking, push_sum, "
                    "allreduce), and average tensors without training by gossamer.torch.Averager "
                    "and dpsgd",
                    name));
  if (setup.algorithm->epochs_per_round() > 0)
    return invalid_error(fmt::format(
        "algorithm.local_steps: '{}' would count passes over a peer's data, whose size only the "
        "program knows; set algorithm.local_steps to a number of steps",
        name));
  if (!setup.device->host_accessible())
    return invalid_error(
        fmt::format("local.device: the rows of an external model are in host memory, and '{}' "
                    "computes on a GPU; set local.device = cpu (the model may be on any device)",
                    config.local.device));
  return recorded ? Status() : check_program(setup, *external);
}

/// In messages.
std::string optimizer_name(const Setup& setup) {
  return setup.workload->spec().external_optimizer
             ? std::string("the program's optimizer")
             : fmt::format("'{}'", to_string(setup.config.resolved.at("optimizer").at("kind")));
}

Status check_optimizer(const Setup& setup) {
  const WorkloadSpec& spec = setup.workload->spec();
  if (setup.config.optimizer.rule.kind == gpu::UpdateRule::Kind::muon && !spec.external_optimizer &&
      setup.algorithm->requirements().servers > 0)
    return invalid_error(fmt::format(
        "optimizer.kind: 'muon' steps with whole matrices, and the servers of '{}' hold "
        "parts of the parameters; set optimizer.kind = adamw, or choose an algorithm "
        "without servers (allreduce, diloco)",
        setup.config.algorithm.kind));
  if (!setup.algorithm->requirements().linear_steps || spec.linear_steps) return {};
  return invalid_error(
      fmt::format("optimizer.kind: '{}' needs steps that are linear in the gradient, and the "
                  "steps of {} are not; {}, or choose an algorithm that "
                  "works with any optimizer (gradient_tracking, allreduce)",
                  setup.config.algorithm.kind, optimizer_name(setup),
                  spec.external_optimizer ? "use SGD" : "set optimizer.kind = sgd"));
}

/// Each peer has the data that its own process reads.
bool has_own_data(const Setup& setup) {
  return setup.config.shards.partition == "own" || setup.config.model.kind == kExternalModel;
}

Status check_open_data(const Setup& setup) {
  const Config& config = setup.config;
  if (!config.run.open || !has_own_data(setup)) return {};
  if (setup.workload->standardised_features() > 0)
    return invalid_error(
        fmt::format("run.open: own data are scaled by the values of all peers, and those of a "
                    "newcomer are not known at the start; {}",
                    setup.workload->spec().external_optimizer
                        ? "scale them by numbers that all programs know, without moments"
                        : "scale the files, and set data.standardise = false"));
  if (config.shards.weights != "peers")
    return invalid_error(
        "run.open: own data are weighed by the sizes of all shards, and that of a newcomer is not "
        "known at the start; set data.weights = peers");
  return {};
}

Status check_data_weights(const Setup& setup) {
  const Config& config = setup.config;
  const gossip::AlgorithmRequirements needs = setup.algorithm->requirements();
  if (config.shards.weights == "peers" || !needs.trainer) return {};
  const WorkloadSpec& spec = setup.workload->spec();
  if (!spec.linear_steps && needs.data_weights == gossip::DataWeights::own_gradients)
    return invalid_error(fmt::format(
        "data.weights: with samples, the gradients of a peer are multiplied by its weight, which "
        "the steps of {} do not depend on; {} data.weights = peers, or "
        "choose an algorithm whose steps are with means of the peers' gradients "
        "(gradient_tracking, allreduce)",
        optimizer_name(setup),
        spec.external_optimizer ? "use SGD, set" : "set optimizer.kind = sgd,"));
  if (has_own_data(setup) && !setup.rule.is_mean())
    return invalid_error(fmt::format(
        "data.weights: with own data each peer states the size of its shard, and one that states "
        "a huge size takes the weight of all others, which mixing.rule = {} does not prevent; set "
        "data.weights = peers",
        config.mixing.kind));
  return {};
}

Status check_codec(const Config& config, const gossip::Algorithm& algorithm,
                   const gossip::Codec& codec) {
  using gossip::Fidelity;
  const Fidelity needed = algorithm.requirements().codec;
  const std::string &kind = config.codec.kind, &name = config.algorithm.kind;
  if (codec.fidelity() > needed && needed == Fidelity::exact)
    return invalid_error(
        fmt::format("codec.kind: '{}' sends its rows unencoded, so '{}' would have no effect; set "
                    "codec.kind = none, or choose an algorithm that mixes (dpsgd) or one with "
                    "error feedback (choco)",
                    name, kind));
  if (codec.fidelity() > needed)
    return invalid_error(
        fmt::format("codec.kind: '{}' omits so much of a row that '{}' does not converge with it; "
                    "set algorithm.kind = choco, which has error feedback, or choose a codec that "
                    "rounds (bf16, int8)",
                    kind, name));
  if (codec.fidelity() != Fidelity::exact && !gossip::is_lockstep(config.exchange.kind()))
    return invalid_error(
        fmt::format("codec.kind: under policy {} rows are sent unencoded, not as '{}'; set "
                    "algorithm.policy = sync, or codec.kind = none",
                    config.exchange.policy, kind));
  return {};
}

Status check_matrix(const Setup& setup) {
  const gossip::AlgorithmRequirements needs = setup.algorithm->requirements();
  const std::string& topology = setup.config.topology.kind;
  const std::string& policy = setup.config.exchange.policy;
  for (const topology::TopologyReport& report : setup.reports)
    if (gossip::needs_symmetric_matrix(setup.config.exchange.kind()) && !report.symmetric)
      return invalid_error(fmt::format(
          "algorithm.policy: under {} both ends of an edge skip an exchange together, "
          "which needs a symmetric W, and the W of '{}' with {} peers is not symmetric; choose "
          "another topology, or policy stale",
          policy, topology, report.peers));
  if (!needs.fixed_matrix) return {};
  if (setup.report().symmetric && setup.report().period == 1)
    return check_eigenvalues(setup, needs.above);
  return invalid_error(
      fmt::format("topology.kind: '{}' needs a symmetric W that is the same in every round, and "
                  "the W of '{}' {}; choose another topology, or an algorithm that accepts any W "
                  "(dpsgd, gradient_tracking)",
                  setup.config.algorithm.kind, topology,
                  setup.report().symmetric ? "changes from round to round" : "is not symmetric"));
}

Status check_virtual_time(const Setup& setup) {
  constexpr double kLongest = 9e9;  // seconds
  const std::size_t words = std::max(setup.parameters, setup.codec->words(setup.parameters));
  const double n = setup.config.run.peers, bits = 8.0 * (4.0 * static_cast<double>(words) + 1e4);
  double sending = 0;
  for (const double mbit_s : {setup.network.least_bandwidth() * 8 / 1e6, least_uplink_mbit_s(setup),
                              least_downlink_mbit_s(setup)})
    if (mbit_s > 0) sending += bits / (mbit_s * 1e6);
  std::uint64_t steps = 0;
  for (int i = 0; i < setup.workers(); ++i) steps = std::max(steps, setup.steps_per_round(i));
  const double computing = static_cast<double>(steps) * longest_step_ms(setup) / 1e3;
  // An upper bound: all messages of an all-reduce one after the other, or all rows over one link.
  const double round = computing + 2 * n * (setup.network.longest_latency() + sending);
  const double whole = round * static_cast<double>(setup.config.run.rounds);
  if (whole <= kLongest) return {};
  return invalid_error(
      fmt::format("run.rounds, sim: {} rounds may take {:.2g} s of virtual time, and the virtual "
                  "clock ends at {:.2g} s; use fewer rounds or a faster network",
                  setup.config.run.rounds, whole, kLongest));
}

}  // namespace gossamer::peer
