#include "peer/setup/setup.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/hash.hpp"
#include "base/philox.hpp"
#include "peer/setup/setup_checks.hpp"
#include "peer/setup/virtual_network.hpp"

namespace gossamer::peer {
namespace {

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

topology::ScheduleRequest schedule_request(const Config& config,
                                           const gossip::Algorithm& algorithm) {
  topology::ScheduleRequest request{config.topology.kind,
                                    config.topology.values,
                                    config.weights,
                                    {config.run.peers, config.run.seed}};
  if (algorithm.requirements().column_stochastic) request.weights.automatic = "out_degree";
  return request;
}

Result<Setup> make_setup(Config config, LocalRank local_rank) {
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
  GOSSAMER_TRY(setup.network, make_network_model(settings, setup.servers()));

  if (local_rank.hosted_nodes == 0) local_rank.hosted_nodes = setup.nodes();
  GOSSAMER_TRY(DeviceChoice choice, choose_device(settings.local, local_rank));
  setup.device = std::move(choice.device);
  setup.device_note = std::move(choice.note);
  if (setup.algorithm->requirements().trainer) {
    GOSSAMER_TRY_STATUS(make_learner(setup));
  } else {
    setup.parameters = setup.algorithm->requirements().row_length;
  }
  GOSSAMER_TRY_STATUS(check_virtual_time(setup));
  const std::size_t words = setup.codec->words(setup.parameters);  // of an encoded row
  const auto max_sent = [&setup, words](const topology::MixingMatrix& w) {
    const auto loads = setup.algorithm->communication(*setup.schedule, w, words);
    std::uint64_t max = 0;
    for (int i = 0; i < setup.workers(); ++i) max = std::max(max, gossip::values_sent(loads, i));
    return max;
  };
  GOSSAMER_TRY(setup.report, topology::examine(*setup.schedule, request, setup.parameters,
                                               topology::Effort::quick, max_sent));
  GOSSAMER_TRY_STATUS(check_matrix(setup));
  return setup;
}

}  // namespace gossamer::peer
