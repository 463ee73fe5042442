#include "train/learner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "base/check.hpp"
#include "train/device_data.hpp"
#include "train/graph/compiled_model.hpp"
#include "train/learner_checks.hpp"
#include "train/privacy/private_gradient.hpp"
#include "train/scoring/scoring.hpp"
#include "train/split/pipelined_gradient.hpp"
#include "train/split/replica_worker.hpp"

namespace gossamer::train {
namespace {

/// Samples of one evaluation job. It bounds the workspace and is the grain in which an evaluation
/// spreads over threads. It is fixed because losses are added job by job.
constexpr std::size_t kEvaluationBatch = 64;

template <class Real>
class DeviceLearner final : public Learner<Real> {
 public:
  /// `worker`: null unless the other workers of a replica are elsewhere.
  DeviceLearner(LearnerRequest request, CompiledModel training, CompiledModel evaluation,
                std::shared_ptr<const SplitModel> split,
                std::unique_ptr<ReplicaWorker<Real>> worker, const ModelPart* part,
                gpu::BasicDevice<Real>& device)
      : request_(std::move(request)),
        training_(std::move(training)),
        evaluation_(std::move(evaluation)),
        split_(std::move(split)),
        worker_(std::move(worker)),
        part_(part),
        device_(device) {
    std::vector<std::size_t> sizes;
    for (const auto& shard : request_.shards) {
      const auto peer = static_cast<int>(sizes.size());
      sizes.push_back(shard.size());
      auto& order = orders_.emplace_back();
      if (!shard.empty())
        order.emplace(shard, request_.sampling.batch, peer, request_.seed,
                      image_views(request_.sampling, *request_.data));
    }
    set_data(std::move(sizes));
    const Dataset& data = *request_.data;
    const std::size_t begin = data.test_count() > 0 ? data.train_count : 0;
    const std::size_t end = data.test_count() > 0 ? data.count : data.train_count;
    for (std::size_t i = begin; i < end; ++i) evaluated_.push_back(static_cast<std::uint32_t>(i));
    if (request_.optimizer.privacy.on())
      private_gradient_.emplace(request_.optimizer.privacy, request_.pair_noise, request_.seed,
                                device_, training_.parameters());
    if (split_ && !worker_) pipeline_.emplace(*split_, request_.split, device_);
  }

  std::size_t parameters() const override {
    return part_ != nullptr ? part_->parameters : training_.parameters();
  }
  const std::vector<ParameterBlock>& blocks() const override {
    return part_ != nullptr ? part_->blocks : training_.blocks();
  }

  void initialise(int peer, std::span<Real> row) const override {
    const auto stream = request_.different_initial ? static_cast<std::uint32_t>(peer) : kNoPeer;
    if (part_ == nullptr) return training_.initialise(request_.seed, stream, row);
    initialise_part(training_, *part_, request_.seed, stream, row.data());
  }

  void local_steps(std::span<StepRequest<Real>> requests) override {
    train(requests, gpu::Pass::step);
  }

  void gradient(std::span<StepRequest<Real>> requests) override {
    for (const auto& request : requests)
      GOSSAMER_CHECK(request.steps == 1, "a gradient is of one batch");
    train(requests, gpu::Pass::gradient);
  }

  void update(std::span<UpdateRequest<Real>> requests) override {
    std::vector<gpu::UpdateJob<Real>> jobs;
    for (const UpdateRequest<Real>& request : requests)
      jobs.push_back({.parameters = request.parameters,
                      .state = request.state,
                      .gradient = request.gradient,
                      .length = request.length,
                      .rate = rate(request.peer, request.step + request.rate_lead),
                      .step = request.step});
    device_.update(request_.optimizer.rule, jobs);
  }

  void evaluate(std::span<EvaluateRequest<Real>> requests) override;
  void batch_loss(std::span<LossRequest<Real>> requests) override;
  double rate(int peer, std::uint64_t step) const override {
    const std::uint64_t epochs = request_.local_epochs;
    return rate_at(request_.optimizer, step,
                   epochs > 0 ? epochs * batches_per_epoch(peer) : request_.local_steps);
  }
  void refresh_data(std::vector<std::size_t> sizes) override {
    GOSSAMER_CHECK(sizes.size() == sizes_.size(), "a size for each peer");
    set_data(std::move(sizes));
  }
  std::size_t shard_size(int peer) const override {
    return sizes_.at(static_cast<std::size_t>(peer));
  }
  double data_weight(int peer) const override {
    const auto n = static_cast<double>(sizes_.size() * shard_size(peer));
    return request_.sampling.weights == "peers" ? 1 : n / static_cast<double>(all_samples_);
  }
  std::uint64_t batches_per_epoch(int peer) const override {
    const std::size_t size = shard_size(peer);
    const auto batch = static_cast<std::size_t>(request_.sampling.batch);
    return batch > 0 ? size / batch : std::min<std::size_t>(size, 1);
  }
  std::size_t workspace_bytes() const override {
    // Of private gradients the memory is the device's, not each peer's; it counts once or more.
    const std::size_t shared =
        !private_gradient_ ? 0
                           : PrivateGradient<Real>::workspace_bytes(training_.parameters()) /
                                 request_.shards.size();
    const int batch = training_.program().batch;
    const std::size_t workspace = worker_   ? worker_->workspace_bytes(batch)
                                  : !split_ ? whole_workspace_bytes()
                                            : PipelinedGradient<Real>::workspace_bytes(
                                                  *split_, request_.split.microbatches_of(batch)) +
                                                  pipeline_->pass_bytes();
    return workspace + shared;
  }
  std::size_t whole_workspace_bytes() const override {
    return training_.program().workspace * sizeof(Real);
  }
  std::shared_ptr<const SplitModel> split() const override { return split_; }

 private:
  gpu::Task task(const CompiledModel& network) const {
    gpu::Task task{.program = &network.program(),
                   .tables = {},
                   .rule = request_.optimizer.rule,
                   .noise = {.deviation = request_.data->gradient_noise, .seed = request_.seed}};
    if (&network == &training_) task.views = image_views(request_.sampling, *request_.data);
    for (const DeviceTable& table : tables_) task.tables.push_back(table.get());
    return task;
  }

  double gradient_weight(int p) const { return request_.weigh_gradients ? data_weight(p) : 1; }
  void set_data(std::vector<std::size_t> sizes) {
    sizes_ = std::move(sizes);
    all_samples_ = std::accumulate(sizes_.begin(), sizes_.end(), std::size_t{0});
    tables_.clear();
    for (int gpu_index = 0; gpu_index < device_.gpu_count(); ++gpu_index)
      tables_.emplace_back(device_, gpu_index, *request_.data);
  }
  void train(std::span<StepRequest<Real>> requests, gpu::Pass pass);
  void train_privately(const StepRequest<Real>& request, gpu::Pass pass);
  void train_in_parts(std::span<StepRequest<Real>> requests, gpu::Pass pass);

  LearnerRequest request_;
  CompiledModel training_, evaluation_;
  std::shared_ptr<const SplitModel> split_;  // null: the model is whole
  std::unique_ptr<ReplicaWorker<Real>> worker_;
  const ModelPart* part_;  // of *split_, whose row this process has; null: that of the model
  gpu::BasicDevice<Real>& device_;
  std::vector<DeviceTable> tables_;                // by GPU index
  std::vector<std::optional<BatchOrder>> orders_;  // by peer; none for a shard of another process
  std::vector<std::size_t> sizes_;                 // of the shards, by peer
  std::size_t all_samples_ = 0;                    // their sum
  std::vector<std::uint32_t> evaluated_;
  std::optional<PrivateGradient<Real>> private_gradient_;
  std::optional<PipelinedGradient<Real>> pipeline_;
  // Data of the current call; members so that calls reuse their memory.
  std::vector<gpu::Job<Real>> jobs_;
  std::vector<std::uint32_t> samples_;
  std::vector<double> rates_;
};

template <class Real>
void DeviceLearner<Real>::train_privately(const StepRequest<Real>& request, gpu::Pass pass) {
  const auto peer = static_cast<std::size_t>(request.peer);
  for (int s = 0; s < request.steps; ++s) {
    const std::uint64_t step = request.first_step + static_cast<std::uint64_t>(s);
    private_gradient_->compute(task(training_),
                               {.peer = request.peer,
                                .step = step,
                                .shard = request_.shards[peer],
                                .batch = static_cast<double>(orders_[peer].value().batch_size()),
                                .weight = gradient_weight(request.peer),
                                .parameters = request.parameters,
                                .gradient = request.gradient,
                                .loss = request.loss});
    if (pass == gpu::Pass::gradient) continue;
    UpdateRequest<Real> one{step,         request.parameters, request.state,    request.gradient,
                            parameters(), request.peer,       request.rate_lead};
    update(std::span(&one, 1));
  }
}

/// Replicas that have as many steps left take each together.
template <class Real>
void DeviceLearner<Real>::train_in_parts(std::span<StepRequest<Real>> requests, gpu::Pass pass) {
  int most = 0;
  for (const StepRequest<Real>& request : requests) most = std::max(most, request.steps);
  for (int s = 0; s < most; ++s) {
    samples_.clear();
    std::vector<PipelinedRequest<Real>> replicas;
    std::vector<UpdateRequest<Real>> updates;
    for (const StepRequest<Real>& request : requests) {
      if (s >= request.steps) continue;
      const std::uint64_t step = request.first_step + static_cast<std::uint64_t>(s);
      const auto batch = orders_.at(static_cast<std::size_t>(request.peer)).value().batch(step);
      samples_.insert(samples_.end(), batch.begin(), batch.end());
      replicas.push_back({.step = step,
                          .batch = static_cast<int>(batch.size()),
                          .parameters = request.parameters,
                          .gradient = request.gradient,
                          .weight = gradient_weight(request.peer),
                          .loss = request.loss});
      updates.push_back({step, request.parameters, request.state, request.gradient, parameters(),
                         request.peer, request.rate_lead});
    }
    const std::uint32_t* samples = samples_.data();
    for (PipelinedRequest<Real>& replica : replicas)
      replica.samples = samples, samples += replica.batch;
    if (worker_)
      for (const PipelinedRequest<Real>& replica : replicas)
        worker_->gradient(task(training_), replica);
    else pipeline_->compute(task(training_), replicas);
    if (pass == gpu::Pass::step) update(updates);
  }
}

template <class Real>
void DeviceLearner<Real>::train(std::span<StepRequest<Real>> requests, gpu::Pass pass) {
  if (split_) return train_in_parts(requests, pass);
  if (private_gradient_) {
    for (const StepRequest<Real>& request : requests) train_privately(request, pass);
    return;
  }
  samples_.clear(), rates_.clear(), jobs_.clear();
  for (const StepRequest<Real>& request : requests) {
    BatchOrder& order = orders_.at(static_cast<std::size_t>(request.peer)).value();
    for (int s = 0; s < request.steps; ++s) {
      const std::uint64_t step = request.first_step + static_cast<std::uint64_t>(s);
      const auto batch = order.batch(step);
      samples_.insert(samples_.end(), batch.begin(), batch.end());
      rates_.push_back(rate(request.peer, step + request.rate_lead));
    }
  }
  const std::uint32_t* samples = samples_.data();
  std::size_t first = 0;
  for (const StepRequest<Real>& request : requests) {
    const int batch = orders_[static_cast<std::size_t>(request.peer)]->batch_size();
    jobs_.push_back({.parameters = request.parameters,
                     .state = request.state,
                     .gradient = request.gradient,
                     .samples = samples,
                     .batch = batch,
                     .steps = request.steps,
                     .rates = rates_.data() + first,
                     .peer = static_cast<std::uint32_t>(request.peer),
                     .first_step = request.first_step,
                     .weight = gradient_weight(request.peer),
                     .loss = request.loss});
    samples += static_cast<std::size_t>(batch) * static_cast<std::size_t>(request.steps);
    first += static_cast<std::size_t>(request.steps);
  }
  device_.train(task(training_), pass, jobs_);
}

template <class Real>
void DeviceLearner<Real>::evaluate(std::span<EvaluateRequest<Real>> requests) {
  const std::size_t count = evaluated_.size();
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < count; i += kEvaluationBatch)
    pieces.push_back(std::span(evaluated_).subspan(i, std::min(kEvaluationBatch, count - i)));
  // A bounded number of jobs at a time, because jobs of all peers and samples may not fit in
  // memory.
  const std::size_t together = std::max<std::size_t>(1, request_.evaluation_jobs / pieces.size());
  for (; requests.size() > together; requests = requests.subspan(together))
    evaluate(requests.first(together));
  std::vector<ScoreRequest<Real>> models;
  for (const EvaluateRequest<Real>& request : requests)
    models.push_back({request.parameters, pieces, {}});
  if (worker_)
    for (ScoreRequest<Real>& model : models) worker_->score(task(evaluation_), model);
  else score<Real>(device_, task(evaluation_), models);
  for (std::size_t r = 0; r < requests.size(); ++r) {
    double loss = 0;
    std::int64_t right = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      loss += models[r].scores[i].loss * static_cast<double>(pieces[i].size());
      right += models[r].scores[i].hits;
    }
    const auto samples = static_cast<double>(count);
    const bool classifies = request_.data->classes > 0;
    requests[r].result = {.loss = loss / samples,
                          .accuracy = classifies ? static_cast<double>(right) / samples
                                                 : std::numeric_limits<double>::quiet_NaN()};
  }
}

template <class Real>
void DeviceLearner<Real>::batch_loss(std::span<LossRequest<Real>> requests) {
  GOSSAMER_CHECK(!worker_, "rules that measure losses take whole models");
  std::vector<std::vector<std::uint32_t>> batches;
  std::vector<ScoreRequest<Real>> models;
  for (const LossRequest<Real>& request : requests) {
    const auto batch = orders_.at(static_cast<std::size_t>(request.peer))->batch(request.step);
    batches.emplace_back(batch.begin(), batch.end());
    models.push_back({request.parameters, {batches.back()}, {}});
  }
  score<Real>(device_, task(training_), models);
  for (std::size_t r = 0; r < requests.size(); ++r) requests[r].loss = models[r].scores[0].loss;
}

/// The parts of a model, for microbatches of batches of up to `batch` samples.
Result<std::shared_ptr<const SplitModel>> make_split(const LearnerRequest& request,
                                                     const CompiledModel& model, int batch) {
  GOSSAMER_TRY_STATUS(check_split(request));
  if (!request.split.is_on()) return std::shared_ptr<const SplitModel>();
  GOSSAMER_TRY(SplitModel split, SplitModel::make(model, request.split, batch));
  return std::make_shared<const SplitModel>(std::move(split));
}

/// For evaluations too, the model is cut where `split` cuts it.
template <class Real>
Result<std::unique_ptr<ReplicaWorker<Real>>> make_worker(const SplitModel& split,
                                                         const SplitOptions& options,
                                                         const CompiledModel& evaluation,
                                                         Worker<Real> worker,
                                                         gpu::BasicDevice<Real>& device) {
  SplitOptions whole = options;
  whole.microbatches = 1;
  whole.cuts = split.cuts();
  GOSSAMER_TRY(SplitModel evaluated, SplitModel::make(evaluation, whole, int{kEvaluationBatch}));
  return std::make_unique<ReplicaWorker<Real>>(worker, split, std::move(evaluated), options,
                                               device);
}

}  // namespace

template <class Real>
Result<std::unique_ptr<Learner<Real>>> make_learner(LearnerRequest request,
                                                    gpu::BasicDevice<Real>& device,
                                                    Worker<Real> worker) {
  GOSSAMER_CHECK(request.data != nullptr, "a learner has data");
  const Dataset& data = *request.data;
  GOSSAMER_TRY_STATUS(check_request(request));
  std::size_t batch = static_cast<std::size_t>(request.sampling.batch);
  if (batch == 0)
    for (const auto& shard : request.shards)
      batch = std::max({batch, shard.size(), std::size_t{1}});
  const ModelContext context{data.channels, data.height, data.width, data.classes};
  GOSSAMER_TRY(CompiledModel training,
               CompiledModel::compile(request.model, context, static_cast<int>(batch)));
  GOSSAMER_TRY(CompiledModel evaluation,
               CompiledModel::compile(request.model, context, int{kEvaluationBatch}));
  GOSSAMER_TRY(auto split, make_split(request, training, static_cast<int>(batch)));
  std::unique_ptr<ReplicaWorker<Real>> replica_worker;
  const ModelPart* part = nullptr;
  if (worker.links != nullptr) {
    GOSSAMER_CHECK(split != nullptr, "a worker holds a part of a model that is cut");
    part = &split->parts().at(static_cast<std::size_t>(worker.part));
    GOSSAMER_TRY(replica_worker, make_worker(*split, request.split, evaluation, worker, device));
  }
  return std::unique_ptr<Learner<Real>>(std::make_unique<DeviceLearner<Real>>(
      std::move(request), std::move(training), std::move(evaluation), std::move(split),
      std::move(replica_worker), part, device));
}

template Result<std::unique_ptr<Learner<float>>> make_learner(LearnerRequest,
                                                              gpu::BasicDevice<float>&,
                                                              Worker<float>);
template Result<std::unique_ptr<Learner<double>>> make_learner(LearnerRequest,
                                                               gpu::BasicDevice<double>&,
                                                               Worker<double>);

}  // namespace gossamer::train
