#include "peer/setup/setup.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <limits>

#include "base/hash.hpp"
#include "base/id_list.hpp"
#include "gossip/part_codec.hpp"
#include "peer/attack/attack_check.hpp"
#include "peer/privacy/privacy_plan.hpp"
#include "peer/setup/credentials.hpp"
#include "peer/setup/hosted_ids.hpp"
#include "peer/setup/native_workload.hpp"
#include "peer/setup/rule_check.hpp"
#include "peer/setup/setup_checks.hpp"
#include "peer/setup/untrained_workload.hpp"
#include "peer/setup/virtual_network.hpp"

namespace gossamer::peer {
namespace {

/// The workload that the configuration asks for, or the caller's.
Result<std::shared_ptr<Workload>> make_workload(const Setup& setup, const std::vector<int>& hosted,
                                                std::shared_ptr<Workload> external,
                                                train::Worker<float> worker) {
  const Config& config = setup.config;
  const PrivateRun run{config, *setup.algorithm, setup.rule, *setup.schedule};
  GOSSAMER_TRY_STATUS(check_privacy(run));
  GOSSAMER_TRY_STATUS(check_external(setup, external.get()));
  const gossip::AlgorithmRequirements needs = setup.algorithm->requirements();
  const bool recorded = external && external->spec().recorded;
  if (config.model.split.is_on() && setup.algorithm->multiplies_matrices())
    return invalid_error(fmt::format(
        "split: '{}' multiplies the matrices of whole models; choose an algorithm that only mixes "
        "(dpsgd, gradient_tracking), or set split.layers and split.parameters = 1",
        config.algorithm.kind));
  if (config.model.split.is_on() && !recorded && (external || !needs.trainer))
    return invalid_error(
        external
            ? std::string("split: the model of a program in Python is not cut; give its ranks a "
                          "model shard each (docs/PYTHON.md), or set split.layers and "
                          "split.parameters = 1")
            : fmt::format("split: the algorithm '{}' trains no model", config.algorithm.kind));
  if (external) return external;
  if (!needs.trainer) return make_untrained_workload(needs.row_length, config.run.seed);
  return make_native_workload(run, *setup.device, hosted, setup.attack, worker);
}

gossip::RowPart row_part(const train::SplitModel& model, int part) {
  std::vector<gossip::RowPart::Run> runs;
  model.parts()[static_cast<std::size_t>(part)].for_each_run(
      [&runs](std::size_t whole, std::size_t own, std::size_t values) {
        runs.push_back({whole, own, values});
      });
  return {model.parameters(), std::move(runs)};
}

gossip::ModelRows model_rows(const Setup& setup) {
  const WorkloadSpec& spec = setup.workload->spec();
  gossip::ModelRows rows{.matrices = train::matrices_of(spec.blocks)};
  if (setup.part) rows.part = row_part(*spec.split, *setup.part);
  return rows;
}

/// Has setup.codec encode the parts of a cut model one by one, as split.encode says. The row of a
/// worker apart is one part.
Status encode_parts(Setup& setup) {
  const train::SplitModel* const model = setup.workload->spec().split.get();
  const Config& config = setup.config;
  const bool is_apart = setup.part.has_value(), encodes_parts = config.model.split.encodes_parts();
  if (!model || setup.codec->is_valuewise() || is_apart == encodes_parts) return {};
  if (is_apart)
    return invalid_error(fmt::format(
        "split.encode: '{}' makes messages of whole rows of a model, and a worker in a process of "
        "its own has a part of them; set split.encode = part, which makes a message of each part "
        "(other bits than those of whole rows, and the same in one process), or codec.kind = bf16 "
        "or none",
        config.codec.kind));
  std::vector<gossip::RowPart> parts;
  for (int part = 0; part < static_cast<int>(model->parts().size()); ++part)
    parts.push_back(row_part(*model, part));
  setup.codec = std::make_unique<gossip::PartCodec>(std::move(setup.codec), std::move(parts));
  return {};
}

}  // namespace

std::uint64_t Setup::steps_per_round(int peer) const {
  return gossip::local_steps_of_round(*algorithm,
                                      [&] { return workload->trainer()->batches_per_epoch(peer); });
}

std::vector<int> Setup::counted(const std::vector<int>& nodes, gossip::Round rounds) const {
  std::vector<int> counted;
  std::ranges::copy_if(nodes, std::back_inserter(counted),
                       [&](int node) { return counts_after(node, rounds); });
  return counted;
}

std::vector<int> Setup::counted_workers(gossip::Round rounds) const {
  return counted(first_ids(workers()), rounds);
}

double Setup::step_ms() const {
  if (!workload->spec().split) return whole_step_ms(*this);
  return train::pipeline_time(pipeline_costs(*this), microbatches(*this)).seconds * 1e3;
}

SharedMemory* Setup::share_rows() const {
  const bool shares =
      config.net.shared_memory == "auto" && gossip::is_lockstep(config.exchange.kind());
  return shares ? device->share() : nullptr;
}

Result<topology::TopologyReport> Setup::examine(const topology::MixingSchedule& part) const {
  const std::size_t words = codec->words(parameters);  // of an encoded row
  const auto max_sent = [this, words](const topology::MixingMatrix& w) {
    const auto loads = algorithm->communication(*schedule, w, words);
    std::uint64_t max = 0;
    const int peers = std::min(workers(), w.peers());
    for (int i = 0; i < peers; ++i) max = std::max(max, gossip::values_sent(loads, i));
    return max;
  };
  return topology::examine(part, schedule_request(config, *algorithm), parameters,
                           topology::Effort::quick, max_sent);
}

std::string Setup::model_hash() const {
  std::string text = fmt::format("row {}", parameters);
  for (const train::ParameterBlock& block : workload->spec().blocks)
    text += fmt::format("\n{} {} {}", block.name, fmt::join(block.shape, "x"), block.offset);
  return hash_hex(text + workload->spec().model_text);
}

std::string Setup::configuration_hash() const {
  return hash_hex(config.shared_hash() + workload->data_hash() + workload->spec().model_text);
}

std::string Setup::uncut_configuration_hash() const {
  if (config.model.split.encodes_parts() && !codec->is_valuewise()) return configuration_hash();
  Config uncut = config;
  uncut.resolved["split"] = train::split_parameters().values({});
  return hash_hex(uncut.shared_hash() + workload->data_hash() + workload->spec().model_text);
}

topology::ScheduleRequest schedule_request(const Config& config,
                                           const gossip::Algorithm& algorithm) {
  topology::ScheduleRequest request{config.topology.kind,    config.topology.values,
                                    config.topology.weights, {config.run.peers, config.run.seed},
                                    config.run.participants, config.run.open};
  if (algorithm.requirements().stochastic == topology::Stochastic::columns)
    request.weights.automatic = "out_degree";
  return request;
}

Result<Setup> make_setup(Config config, LocalRank local_rank, std::shared_ptr<Workload> workload,
                         train::Worker<float> worker) {
  Setup setup;
  setup.config = std::move(config);
  const Config& settings = setup.config;
  GOSSAMER_TRY(setup.algorithm,
               gossip::make_algorithm(settings.algorithm.kind, settings.algorithm.values));

  const topology::ScheduleRequest request = schedule_request(settings, *setup.algorithm);
  GOSSAMER_TRY(setup.schedule, topology::make_schedule(request));
  GOSSAMER_TRY_STATUS(check_algorithm(settings, *setup.algorithm, *setup.schedule));
  GOSSAMER_TRY(setup.codec,
               gossip::make_codec(settings.codec.kind, settings.codec.values, {settings.run.seed}));
  GOSSAMER_TRY_STATUS(check_codec(settings, *setup.algorithm, *setup.codec));
  GOSSAMER_TRY(const gossip::RuleKind rule, gossip::find_rule(settings.mixing.kind));
  GOSSAMER_TRY(setup.rule, rule.make(settings.mixing.values));
  GOSSAMER_TRY_STATUS(check_rule(setup, rule));
  GOSSAMER_TRY(setup.attack, plan_attack({settings, *setup.algorithm, *setup.schedule, *setup.codec,
                                          setup.rule}));
  GOSSAMER_TRY(VirtualNetwork network, make_virtual_network(settings, setup.servers()));
  setup.network = std::move(network.links);
  setup.probed_nodes = std::move(network.nodes);

  std::vector<int> hosted = local_rank.hosted;
  if (hosted.empty()) {
    local_rank.hosted = first_ids(setup.nodes());
    hosted = first_ids(settings.run.peers);  // one node may train on the shards of all peers
  }
  GOSSAMER_TRY(DeviceChoice choice, choose_device(settings.local, local_rank));
  setup.device = std::move(choice.device);
  setup.device_note = std::move(choice.note);
  GOSSAMER_TRY(setup.workload, make_workload(setup, hosted, std::move(workload), worker));
  setup.parameters = setup.workload->spec().parameters;
  if (worker.links != nullptr) setup.part = worker.part;
  setup.algorithm->set_model(model_rows(setup));
  GOSSAMER_TRY_STATUS(encode_parts(setup));
  GOSSAMER_TRY_STATUS(check_optimizer(setup));
  GOSSAMER_TRY_STATUS(check_data_weights(setup));
  GOSSAMER_TRY_STATUS(check_open_data(setup));
  GOSSAMER_TRY_STATUS(check_virtual_time(setup));
  for (const topology::MixingSchedule* part : setup.schedule->parts()) {
    GOSSAMER_TRY(topology::TopologyReport report, setup.examine(*part));
    setup.reports.push_back(std::move(report));
  }
  GOSSAMER_TRY_STATUS(check_matrix(setup));
  return setup;
}

namespace {

/// The pages of processes that a launcher starts on one machine, all with one configuration, have
/// ports of their own: the one of the configuration, and those after it. A process that is started
/// by hand has the port that it was given.
Status part_pages(net::NetOptions& options, const LocalRank& local_rank) {
  if (options.http.empty() || !local_rank.of_launcher || local_rank.rank == 0) return {};
  auto address = net::parse_address(options.http);
  if (!address.ok() || address->port == 0) return {};  // an error is reported where it is used
  const int port = address->port + local_rank.rank;
  if (port > std::numeric_limits<std::uint16_t>::max())
    return invalid_error(
        fmt::format("net.http: process {} of this machine would serve at port {}; "
                    "choose a lower port, or 0",
                    local_rank.rank, port));
  address->port = static_cast<std::uint16_t>(port);
  options.http = net::to_string(*address);
  return {};
}

/// A process whose peers wait for a model is many rounds behind the others, so the newest
/// checkpoints of the processes would hardly ever have a round in common.
Status check_network_checkpoints(const Setup& setup) {
  if (setup.config.checkpoint.every == 0) return {};
  for (int peer = 0; peer < setup.workers(); ++peer)
    if (!setup.is_current(peer, 0))
      return invalid_error(fmt::format(
          "checkpoint.every: with '{}' most peers wait in earlier rounds, and a network "
          "keeps no round that all have; set checkpoint.every = 0, or run it in one "
          "process (gossamer run)",
          setup.config.algorithm.kind));
  return {};
}

}  // namespace

Result<Setup> make_network_setup(Config config, const std::vector<int>& hosted,
                                 const Environment& environment, std::shared_ptr<Workload> workload,
                                 train::Worker<float> worker) {
  GOSSAMER_TRY(const int nodes, node_count(config));
  net::expand_addresses(config.net, nodes);
  // Workers of cut models have addresses of their own, and keys by replica.
  if (worker.links == nullptr) GOSSAMER_TRY_STATUS(check_member_addresses(config.net));
  GOSSAMER_TRY_STATUS(add_addresses(config.net));
  const LocalRank local_rank = find_local_rank(hosted, config.run.peers, config.net, environment);
  GOSSAMER_TRY_STATUS(check_network_attack(config));
  GOSSAMER_TRY_STATUS(part_pages(config.net, local_rank));
  GOSSAMER_TRY(Setup setup, make_setup(std::move(config), local_rank, std::move(workload), worker));
  GOSSAMER_TRY_STATUS(check_network_checkpoints(setup));
  return setup;
}

}  // namespace gossamer::peer
