#include "peer/setup/native_workload.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.hpp"
#include "gpu/device_rows.hpp"
#include "peer/attack/poisoning.hpp"
#include "peer/setup/learner_trainer.hpp"
#include "train/graph/operators.hpp"
#include "train/muon/muon_learner.hpp"

namespace gossamer::peer {
namespace {

/// Names of the rows of the optimizer's state, in its order.
std::vector<std::string> optimizer_rows(const gpu::UpdateRule& rule) {
  if (rule.kind != gpu::UpdateRule::Kind::sgd) return {"first_moment", "second_moment"};
  return std::vector<std::string>(rule.state_rows(), "momentum");
}

/// Of the shards in this process.
double mean_shard_size(const train::Dataset& data, int peers) {
  const auto here = std::ranges::count_if(
      data.own_shards, [](const train::ShardSummary& shard) { return shard.samples > 0; });
  return static_cast<double>(data.train_count) /
         static_cast<double>(!data.own ? peers : std::max<std::ptrdiff_t>(here, 1));
}

WorkloadSpec spec_of(const Config& config, const train::Learner<float>& learner,
                     std::shared_ptr<const train::Dataset> data) {
  WorkloadSpec spec;
  spec.parameters = learner.parameters();
  spec.blocks = learner.blocks();
  spec.optimizer_rows = optimizer_rows(config.optimizer.rule);
  spec.linear_steps = config.optimizer.rule.kind == gpu::UpdateRule::Kind::sgd;
  spec.evaluates = true;
  spec.samples_per_step = config.shards.batch;
  if (config.shards.batch == 0)  // the whole shard
    spec.samples_per_step = mean_shard_size(*data, config.run.peers);
  spec.identity = data->sample_description;
  spec.workspace = {learner.workspace_bytes(), learner.whole_workspace_bytes()};
  spec.split = learner.split();
  spec.divergence_advice =
      fmt::format("a smaller optimizer.rate than {} usually helps", config.optimizer.rate);
  spec.data = std::move(data);
  return spec;
}

/// The test samples that a backdoor is measured on, and a learner that evaluates on them.
Result<std::unique_ptr<train::Learner<float>>> make_backdoor_test(const train::Dataset& data,
                                                                  const gossip::Backdoor& backdoor,
                                                                  const train::ModelSpec& model,
                                                                  gpu::Device& device) {
  GOSSAMER_TRY(train::Dataset triggered, triggered_samples(data, backdoor));
  train::LearnerRequest request;
  request.data = std::make_shared<const train::Dataset>(std::move(triggered));
  request.shards = {{0}};  // for evaluation only
  request.sampling.batch = 1;
  request.model = model;
  return train::make_learner<float>(std::move(request), device);
}

/// The noise that neighbours share. `secret`: set where other processes have to agree on it.
train::PairNoiseRequest pair_noise(const PrivateRun& run, const std::vector<int>& hosted,
                                   std::shared_ptr<SecretPairs>& secret) {
  const train::PrivacyOptions& privacy = run.config.optimizer.privacy;
  if (privacy.pair_noise == 0) return {};
  train::PairNoiseRequest request{privacy.pair_noise * privacy.clip,
                                  noise_partners(run.schedule).out, nullptr};
  if (privacy.noise == "reproducible")
    request.secrets = std::make_shared<ReproduciblePairs>(run.config.run.seed);
  else request.secrets = secret = std::make_shared<SecretPairs>(run.config.run_id(), hosted);
  return request;
}

class NativeWorkload final : public Workload {
 public:
  NativeWorkload(WorkloadSpec spec, std::shared_ptr<train::Dataset> data,
                 std::unique_ptr<train::Learner<float>> learner,
                 std::unique_ptr<train::Learner<float>> backdoor_test,
                 std::shared_ptr<SecretPairs> pairs, train::WorkerLinks<float>* links,
                 gpu::Device& device, int peers)
      : spec_(std::move(spec)),
        data_(std::move(data)),
        standardised_features_(data_->unscaled.empty() ? 0 : data_->feature_count()),
        device_(device),
        links_(links),
        learner_(std::move(learner)),
        backdoor_test_(std::move(backdoor_test)),
        pairs_(std::move(pairs)) {
    if (spec_.privacy) account_.emplace(*spec_.privacy);
    trainer_.emplace(*learner_, device, peers, privacy_account(), links_);
  }

  const WorkloadSpec& spec() const override { return spec_; }
  void initialise(int node, std::span<float> row) const override {
    learner_->initialise(node, row);
  }
  gossip::Trainer* trainer() override { return &*trainer_; }
  PrivacyAccount* privacy_account() override { return account_ ? &*account_ : nullptr; }
  SecretPairs* secret_pairs() override { return pairs_.get(); }

  std::vector<train::Evaluation> evaluate(const RowViews& rows,
                                          std::span<const int> /*nodes*/) override {
    return evaluate_with(*learner_, rows);
  }
  std::vector<double> backdoor_success(const RowViews& rows) override {
    std::vector<double> shares;
    if (backdoor_test_)
      for (const train::Evaluation& on_triggered : evaluate_with(*backdoor_test_, rows))
        shares.push_back(on_triggered.accuracy);
    return shares;
  }

  LossSum loss_sum(int peer) const override { return trainer_->loss_sum(peer); }
  void set_loss_sum(int peer, const LossSum& losses, const float* x) override {
    trainer_->set_loss_sum(peer, losses, x);
  }
  Shards own_shards() const override { return data_->own_shards; }
  std::size_t standardised_features() const override { return standardised_features_; }
  void agree(const Shards& shards) override {
    if (!data_->unscaled.empty()) standardise(*data_, shards);
    data_->unscaled = {};
    std::vector<std::size_t> sizes;
    for (const train::ShardSummary& shard : shards) sizes.push_back(shard.samples);
    learner_->refresh_data(std::move(sizes));
  }
  std::string data_hash() const override {
    if (data_->own) return {};
    return hash_hex(std::as_bytes(std::span(spec_.data->features))) +
           hash_hex(std::as_bytes(std::span(spec_.data->labels))) +
           hash_hex(std::as_bytes(std::span(spec_.data->targets)));
  }
  void interrupt() override {
    if (links_ != nullptr) links_->close();
  }
  void set_one_at_a_time(bool one_at_a_time) override {
    trainer_->set_one_at_a_time(one_at_a_time);
  }

 private:
  std::vector<train::Evaluation> evaluate_with(train::Learner<float>& learner,
                                               const RowViews& rows) {
    const bool in_place = device_.host_accessible();
    const gpu::DeviceRows<float> copies(device_, in_place ? 0 : rows.size(), spec_.parameters);
    std::vector<train::EvaluateRequest<float>> requests;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (!in_place) device_.upload(copies.row(i).data(), rows[i].data(), rows[i].size_bytes());
      requests.push_back({in_place ? rows[i].data() : copies.row(i).data(), {}});
    }
    learner.evaluate(requests);
    std::vector<train::Evaluation> results;
    for (const auto& request : requests) results.push_back(request.result);
    return results;
  }

  WorkloadSpec spec_;
  std::shared_ptr<train::Dataset> data_;  // of the learner, which copies what it is told to refresh
  std::size_t standardised_features_;     // the same in all processes
  gpu::Device& device_;
  train::WorkerLinks<float>* links_;  ///< null: no worker is elsewhere
  std::unique_ptr<train::Learner<float>> learner_;
  std::unique_ptr<train::Learner<float>> backdoor_test_;  ///< null: the run has no backdoor
  std::shared_ptr<SecretPairs> pairs_;                    ///< null: peers share no secret noise
  std::optional<PrivacyAccount> account_;
  std::optional<LearnerTrainer> trainer_;  ///< from the constructor on
};

}  // namespace

train::DatasetContext data_context(const Config& config, std::span<const int> hosted) {
  train::DatasetContext context{config.run.peers, config.run.seed};
  context.own = config.shards.partition == "own";
  context.validation = config.shards.validation;
  if (config.shards.evaluate == "validation") context.evaluate = train::EvaluationSplit::validation;
  for (const int node : hosted)
    if (node < config.run.peers) context.hosted.push_back(node);
  return context;
}

Result<std::shared_ptr<Workload>> make_native_workload(const PrivateRun& run, gpu::Device& device,
                                                       std::span<const int> hosted,
                                                       const gossip::AttackPlan& attack,
                                                       train::Worker<float> worker) {
  const Config& config = run.config;
  const gossip::Algorithm& algorithm = run.algorithm;
  const train::DatasetContext context = data_context(config, hosted);
  GOSSAMER_TRY(train::Dataset made,
               train::make_dataset(config.data.kind, context, config.data.values));
  train::LearnerRequest request;
  GOSSAMER_TRY(request.shards,
               train::make_shards(made, config.shards, config.run.peers, config.run.seed));
  GOSSAMER_TRY_STATUS(poison(made, request.shards, attack));
  const auto data = std::make_shared<train::Dataset>(std::move(made));
  request.data = data;
  const train::ModelContext model_context{data->channels, data->height, data->width, data->classes};
  GOSSAMER_TRY(request.model,
               train::make_model(config.model.kind, model_context, config.model.values));
  const std::string model_text =
      config.model.kind == kGraphModel ? train::canonical_text(request.model) : "";
  request.sampling = config.shards;
  request.optimizer = config.optimizer;
  request.split = config.model.split;
  request.local_steps = config.run.rounds * static_cast<std::uint64_t>(algorithm.steps_per_round());
  request.local_epochs =
      config.run.rounds * static_cast<std::uint64_t>(algorithm.epochs_per_round());
  request.weigh_gradients = algorithm.requirements().data_weights != gossip::DataWeights::models;
  request.seed = config.run.seed;
  request.different_initial = config.run.init == "different";
  std::optional<PrivacyPlan> privacy;
  std::shared_ptr<SecretPairs> pairs;
  if (config.optimizer.privacy.on()) {
    GOSSAMER_TRY(privacy, plan_privacy(run, *data, request.shards));
    request.optimizer.privacy = privacy->options;
    request.pair_noise = pair_noise(run, context.hosted, pairs);
  }
  std::unique_ptr<train::Learner<float>> backdoor_test;
  if (attack.backdoor() != nullptr) {
    GOSSAMER_TRY(backdoor_test,
                 make_backdoor_test(*data, *attack.backdoor(), request.model, device));
  }
  const train::OptimizerOptions optimizer = request.optimizer;
  GOSSAMER_TRY(auto learner, train::make_learner<float>(std::move(request), device, worker));
  if (optimizer.rule.kind == gpu::UpdateRule::Kind::muon)
    learner = train::make_muon_learner(std::move(learner), optimizer, device);
  WorkloadSpec spec = spec_of(config, *learner, data);
  spec.model_text = model_text;
  spec.privacy = std::move(privacy);
  const auto workload = std::make_shared<NativeWorkload>(std::move(spec), data, std::move(learner),
                                                         std::move(backdoor_test), std::move(pairs),
                                                         worker.links, device, config.run.peers);
  const bool all_here = context.hosted.size() == static_cast<std::size_t>(config.run.peers);
  if (data->own && (all_here || config.run.open)) workload->agree(data->own_shards);
  if (config.run.open) data->own_shards.clear();  // no process has to know those of others
  return std::shared_ptr<Workload>(workload);
}

}  // namespace gossamer::peer
