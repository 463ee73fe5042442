#include "peer/runtime/setup.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "base/hash.hpp"
#include "base/philox.hpp"
#include "gpu/device_rows.hpp"
#include "peer/runtime/virtual_network.hpp"
#include "topology/krylov.hpp"
#include "topology/spectrum.hpp"

namespace gossamer::peer {
namespace {

Error invalid(std::string message) { return {ErrorKind::invalid, std::move(message)}; }

/// Combinations that cannot run, each with a reason and what would fit.
Status check_combination(const Config& config, const gossip::Algorithm& algorithm,
                         const topology::MixingSchedule& schedule) {
  const gossip::AlgorithmNeeds needs = algorithm.needs();
  const std::string& policy = config.exchange.policy;
  if (policy != "sync" && !needs.mixing_matrix)
    return invalid(
        fmt::format("algorithm.policy: it says whom a mix waits for, and '{}' does not mix; leave "
                    "the policy at sync or choose "
                    "an algorithm that mixes (dpsgd)",
                    config.algorithm.kind));
  const auto rows = algorithm.rows(schedule);
  const bool keeps_sums = std::any_of(rows.begin() + 1, rows.end(),
                                      [](const auto& row) { return row.conserved_sum; }) &&
                          std::ranges::any_of(rows, &gossip::RowSpec::mixed);
  if ((policy == "async" || policy == "stale") && keeps_sums)
    return invalid(
        fmt::format("algorithm.policy: '{}' keeps sums over the peers, which rows that are late or "
                    "missing would break; leave "
                    "the policy at sync or choose an algorithm that keeps none (dpsgd)",
                    config.algorithm.kind));
  if (policy == "deadline" && needs.fixed_matrix)
    return invalid(fmt::format(
        "algorithm.policy: '{}' needs a W that is the same in every round, and a deadline changes "
        "it; leave the "
        "policy at sync or choose an algorithm that takes any (dpsgd, gradient_tracking)",
        config.algorithm.kind));
  if (policy != "sync" && needs.synchronous)
    return invalid(
        fmt::format("algorithm.policy: '{}' takes rows of the same round, all of them; leave the "
                    "policy at sync or choose an "
                    "algorithm that bears late rows (dpsgd)",
                    config.algorithm.kind));
  if (schedule.weighing().only_columns() && !needs.only_columns && needs.mixing_matrix)
    return invalid(
        fmt::format("topology.weights: out_degree keeps only the columns of W, which '{}' does not "
                    "make good; choose other "
                    "weights (auto), or algorithm.kind = push_sum",
                    config.algorithm.kind));
  if (config.run.init == "different" && needs.equal_start)
    return invalid(
        fmt::format("run.init: '{}' takes it that all start from the same parameters; leave "
                    "run.init at same, or choose an "
                    "algorithm that mixes (dpsgd)",
                    config.algorithm.kind));
  if (needs.linear_steps && config.optimizer.rule.kind != gpu::UpdateRule::Kind::sgd)
    return invalid(
        fmt::format("optimizer.kind: '{}' counts on steps that are linear in the gradient, and "
                    "those of '{}' are not; choose "
                    "optimizer.kind = sgd, or an algorithm that goes with any optimizer "
                    "(gradient_tracking, allreduce)",
                    config.algorithm.kind, to_string(config.resolved.at("optimizer").at("kind"))));
  return algorithm.check(schedule);
}

/// What an algorithm's exchanges can make of a codec's messages.
Status check_codec(const Config& config, const gossip::Algorithm& algorithm,
                   const gossip::Codec& codec) {
  using gossip::Fidelity;
  const Fidelity needed = algorithm.needs().codec;
  const std::string &kind = config.codec.kind, &name = config.algorithm.kind;
  if (codec.fidelity() > needed && needed == Fidelity::exact)
    return invalid(fmt::format(
        "codec.kind: the rows of '{}' travel as they are, so '{}' would code nothing; leave "
        "codec.kind "
        "at none, or choose an algorithm that mixes (dpsgd) or feeds errors back (choco)",
        name, kind));
  if (codec.fidelity() > needed)
    return invalid(fmt::format(
        "codec.kind: '{}' leaves so much of a row out that mixing with it, as '{}' does, does not "
        "converge; set algorithm.kind = choco, which feeds back what was left out, or a codec that "
        "rounds (bf16, "
        "int8)",
        kind, name));
  if (codec.fidelity() != Fidelity::exact && config.exchange.policy != "sync")
    return invalid(
        fmt::format("codec.kind: under the policy {} rows travel as they are, not as '{}'; set "
                    "algorithm.policy = "
                    "sync, or codec.kind = none",
                    config.exchange.policy, kind));
  return {};
}

Status check_eigenvalues(const Setup& setup, double above) {
  constexpr double kRounding = 1e-9;
  if (above <= -1 || setup.config.run.peers < 2) return {};
  const auto ends = topology::symmetric_ends(*setup.schedule->at(0), setup.schedule->lattice());
  if (!ends || ends->low > above + kRounding) return {};
  return invalid(
      fmt::format("topology.lazy: '{}' needs a W whose eigenvalues lie above {:.3f}, and the "
                  "lowest of '{}' with {} "
                  "weights is {:.3f}; set topology.lazy = true",
                  setup.config.algorithm.kind, above, setup.config.topology.kind,
                  setup.report.weights, ends->low));
}

Status check_matrix(const Setup& setup) {
  const gossip::AlgorithmNeeds needs = setup.algorithm->needs();
  if (setup.config.exchange.policy == "deadline" && !setup.report.symmetric)
    return invalid(
        fmt::format("algorithm.policy: under deadline the two ends of an edge leave a round's "
                    "exchange out together, "
                    "which takes a symmetric W, and that of '{}' is not; choose another topology, "
                    "or policy stale",
                    setup.config.topology.kind));
  if (!needs.fixed_matrix) return {};
  if (setup.report.symmetric && setup.report.period == 1)
    return check_eigenvalues(setup, needs.above);
  return invalid(fmt::format(
      "topology.kind: '{}' needs a symmetric W that is the same in every round, and that of '{}' "
      "{}; "
      "choose another topology, or an algorithm that takes any (dpsgd, gradient_tracking)",
      setup.config.algorithm.kind, setup.config.topology.kind,
      setup.report.symmetric ? "changes from round to round" : "is not symmetric"));
}

/// The virtual clock counts nanoseconds and ends after 292 years.
Status check_virtual_time(const Setup& setup) {
  constexpr double kLongest = 9e9;  // seconds
  const SimOptions& sim = setup.config.sim;
  const std::size_t words = std::max(setup.parameters, setup.codec->words(setup.parameters));
  const double n = setup.config.run.peers, bits = 8.0 * (4.0 * static_cast<double>(words) + 1e4);
  double sending = 0;
  for (const double mbit_s :
       {setup.network.least_bandwidth() * 8 / 1e6, sim.uplink_mbit_s, sim.downlink_mbit_s})
    if (mbit_s > 0) sending += bits / (mbit_s * 1e6);
  const double step = setup.step_ms() / 1e3 * gossip::Spread{.width = sim.compute_spread}.largest();
  std::uint64_t steps = 0;
  for (int i = 0; i < setup.workers(); ++i) steps = std::max(steps, setup.steps_per_round(i));
  const double computing = static_cast<double>(steps) * step * std::max(1.0, sim.slow_factor);
  // At most: every message of an all-reduce after the other, or every row over one link.
  const double round = computing + 2 * n * (setup.network.longest_latency() + sending);
  const double whole = round * static_cast<double>(setup.config.run.rounds);
  if (whole <= kLongest) return {};
  return invalid(fmt::format(
      "run.rounds, sim: {} rounds may take {:.2g} s of virtual time, more than its clock can count "
      "({:.2g}); fewer rounds, or a faster network",
      setup.config.run.rounds, whole, kLongest));
}

Status make_learner(Setup& setup) {
  const Config& config = setup.config;
  const train::DatasetContext data_context{config.run.peers, config.run.seed};
  GOSSAMER_TRY(train::Dataset data,
               train::make_dataset(config.data.kind, data_context, config.data.values));
  setup.data = std::make_shared<const train::Dataset>(std::move(data));

  train::LearnerRequest request;
  request.data = setup.data;
  GOSSAMER_TRY(request.shards,
               train::make_shards(*setup.data, config.shards, config.run.peers, config.run.seed));
  const train::ModelContext model_context{setup.data->channels, setup.data->height,
                                          setup.data->width, setup.data->classes};
  GOSSAMER_TRY(request.model,
               train::make_model(config.model.kind, model_context, config.model.values));
  request.sampling = config.shards;
  request.optimizer = config.optimizer;
  request.local_steps =
      config.run.rounds * static_cast<std::uint64_t>(setup.algorithm->steps_per_round());
  request.local_epochs =
      config.run.rounds * static_cast<std::uint64_t>(setup.algorithm->epochs_per_round());
  request.seed = config.run.seed;
  request.different_initial = config.run.init == "different";
  GOSSAMER_TRY(setup.learner, train::make_learner<float>(std::move(request), *setup.device));
  setup.trainer = std::make_unique<LearnerTrainer>(*setup.learner, *setup.device, config.run.peers);
  setup.parameters = setup.learner->parameters();
  return {};
}

/// A GPU of the device that has too little memory for its share of the nodes.
struct Shortage {
  std::size_t nodes = 0, free = 0;  ///< its share, and the bytes it has
  std::size_t room = 0;             ///< nodes that the memory of all GPUs together holds
};

/// The GPU that lacks most, where `hosted` nodes of `bytes` each do not fit.
std::optional<Shortage> shortage(gpu::Memory& device, std::size_t bytes, std::size_t hosted) {
  const auto gpus = static_cast<std::size_t>(device.gpu_count());
  std::optional<Shortage> worst;
  std::size_t least = std::numeric_limits<std::size_t>::max();
  for (std::size_t gpu_index = 0; gpu_index < gpus; ++gpu_index) {
    const std::size_t nodes = gpu::DeviceRows<float>::count_on(gpu_index, gpus, hosted);
    const std::size_t free = device.memory_info(static_cast<int>(gpu_index)).free;
    least = std::min(least, free / bytes);
    if (nodes * bytes > free && (!worst || free < worst->free))
      worst = {.nodes = nodes, .free = free};
  }
  if (worst) worst->room = least * gpus;
  return worst;
}

/// What a peer's coded channels take (gossip/exchange/coding.hpp).
std::size_t coding_bytes(const Setup& setup) {
  if (setup.codec->fidelity() == gossip::Fidelity::exact) return 0;
  const std::size_t messages =
      gpu::DeviceRows<float>::bytes(2, setup.codec->words(setup.parameters));
  if (setup.algorithm->needs().codec == gossip::Fidelity::partial) return messages;
  std::size_t mixed = 0;
  for (const gossip::RowSpec& row : setup.algorithm->rows(*setup.schedule))
    mixed += row.mixed ? 1 : 0;
  return mixed * (messages + gpu::DeviceRows<float>::bytes(2, setup.parameters));
}

}  // namespace

std::uint64_t Setup::steps_per_round(int peer) const {
  const auto epochs = static_cast<std::uint64_t>(algorithm->epochs_per_round());
  return epochs > 0 ? epochs * learner->batches_per_epoch(peer)
                    : static_cast<std::uint64_t>(algorithm->steps_per_round());
}

double Setup::step_ms() const {
  double samples = config.shards.batch;
  if (samples == 0 && data) samples = static_cast<double>(data->train_count) / config.run.peers;
  return config.sim.compute_ms + samples * config.sim.sample_ms;
}

void Setup::initialise(int peer, std::span<float> row) const {
  if (learner) {
    learner->initialise(peer, row);
    return;
  }
  RandomStream random(config.run.seed, static_cast<std::uint32_t>(peer), Purpose::initial_rows);
  for (float& value : row) value = static_cast<float>(random.next_normal());
}

std::string Setup::model_hash() const {
  std::string text = fmt::format("row {}", parameters);
  if (learner)
    for (const train::ParameterBlock& block : learner->blocks())
      text += fmt::format("\n{} {} {}", block.name, fmt::join(block.shape, "x"), block.offset);
  return hash_hex(text);
}

std::string Setup::configuration_hash() const {
  std::string text = config.shared_hash();
  if (data) {
    text += hash_hex(std::as_bytes(std::span(data->features))) +
            hash_hex(std::as_bytes(std::span(data->labels))) +
            hash_hex(std::as_bytes(std::span(data->targets)));
  }
  return hash_hex(text);
}

Status check_memory(const Setup& setup, std::size_t hosted) {
  if (setup.device->host_accessible()) return {};
  std::size_t rows = 0;
  for (const gossip::RowSpec& row : setup.algorithm->rows(*setup.schedule))
    rows += static_cast<std::size_t>(row.parts) * (row.mixed ? 2 : 1);
  if (setup.trainer)
    rows += 1 + setup.config.optimizer.rule.state_rows();  // the gradient, and the optimizer's
  const std::size_t workspace = setup.learner ? setup.learner->workspace_bytes() : 0;
  const std::size_t peer =
      rows * gpu::DeviceRows<float>::bytes(1, setup.parameters) + workspace + coding_bytes(setup);
  const auto lacking = shortage(*setup.device, peer, hosted);
  if (!lacking) return {};
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  const bool one = setup.device->gpu_count() == 1;
  return invalid(fmt::format(
      "out of memory on {}: {} need {:.2f} GiB ({} rows of {} values and {:.1f} MiB of workspace "
      "each), "
      "{:.2f} GiB are free{}: room for {} peers{}; fewer peers in this process, a smaller model or "
      "batch, "
      "or local.device = cpu",
      setup.device->description(),
      one ? fmt::format("{} peers", hosted)
          : fmt::format("{} of the {} peers are on one GPU and", lacking->nodes, hosted),
      static_cast<double>(peer * lacking->nodes) / kGiB, rows, setup.parameters,
      static_cast<double>(workspace) / 1024 / 1024, static_cast<double>(lacking->free) / kGiB,
      one ? "" : " there", lacking->room, one ? "" : " on all GPUs"));
}

topology::ScheduleRequest schedule_request(const Config& config,
                                           const gossip::Algorithm& algorithm) {
  topology::ScheduleRequest request{config.topology.kind,
                                    config.topology.values,
                                    config.weights,
                                    {config.run.peers, config.run.seed}};
  if (algorithm.needs().only_columns) request.weights.automatic = "out_degree";
  return request;
}

Result<Setup> make_setup(Config config, ProcessPlace place) {
  Setup setup;
  setup.config = std::move(config);
  const Config& decided = setup.config;
  GOSSAMER_TRY(setup.algorithm,
               gossip::make_algorithm(decided.algorithm.kind, decided.algorithm.values));

  const topology::ScheduleRequest request = schedule_request(decided, *setup.algorithm);
  GOSSAMER_TRY(setup.schedule, topology::make_schedule(request));
  GOSSAMER_TRY_STATUS(check_combination(decided, *setup.algorithm, *setup.schedule));
  GOSSAMER_TRY(setup.codec,
               gossip::make_codec(decided.codec.kind, decided.codec.values, {decided.run.seed}));
  GOSSAMER_TRY_STATUS(check_codec(decided, *setup.algorithm, *setup.codec));

  GOSSAMER_TRY(setup.network, virtual_network(decided, setup.servers()));

  if (place.nodes == 0) place.nodes = setup.nodes();
  GOSSAMER_TRY(DeviceChoice choice, choose_device(decided.local, place));
  setup.device = std::move(choice.device);
  setup.device_note = std::move(choice.note);
  if (setup.algorithm->needs().trainer) {
    GOSSAMER_TRY_STATUS(make_learner(setup));
  } else {
    setup.parameters = setup.algorithm->needs().row_length;
  }
  GOSSAMER_TRY_STATUS(check_virtual_time(setup));
  const std::size_t words = setup.codec->words(setup.parameters);  // of a row as it travels
  const auto most_sent = [&setup, words](const topology::MixingMatrix& w) {
    const auto loads = setup.algorithm->loads(*setup.schedule, w, words);
    std::uint64_t most = 0;
    for (int i = 0; i < setup.workers(); ++i) most = std::max(most, gossip::values_sent(loads, i));
    return most;
  };
  GOSSAMER_TRY(setup.report, topology::examine(*setup.schedule, request, setup.parameters,
                                               topology::Effort::quick, most_sent));
  GOSSAMER_TRY_STATUS(check_matrix(setup));
  return setup;
}

}  // namespace gossamer::peer
