#include "peer/setup/learner_trainer.hpp"

#include <limits>
#include <utility>

namespace gossamer::peer {

using gossip::TrainOperation;
using gossip::TrainRequest;

namespace {

gpu::StateRows<float> state_of(const TrainRequest& request) {
  gpu::StateRows<float> state = {};
  for (std::size_t k = 0; k < request.state.size(); ++k) state.at(k) = request.state[k].data();
  return state;
}

}  // namespace

LearnerTrainer::LearnerTrainer(train::Learner<float>& learner, gpu::Device& device, int peers,
                               PrivacyAccount* account, train::WorkerLinks<float>* links)
    : learner_(learner),
      device_(device),
      account_(account),
      links_(links),
      loss_sums_(device, static_cast<std::size_t>(device.gpu_count()),
                 static_cast<std::size_t>(peers)),
      loss_counts_(static_cast<std::size_t>(peers)) {}

void LearnerTrainer::run(TrainOperation operation, std::span<TrainRequest* const> requests) {
  if (operation == TrainOperation::take_loss) return take_losses(requests);
  if (links_ != nullptr && leave_out(operation, requests)) return;
  const std::size_t batch_size = one_at_a_time_ ? 1 : requests.size();
  for (; !requests.empty(); requests = requests.subspan(batch_size)) {
    const auto batch = requests.first(batch_size);
    if (operation == TrainOperation::update) update(batch);
    else if (operation == TrainOperation::evaluate) evaluate(batch);
    else if (operation == TrainOperation::batch_loss) batch_losses(batch);
    else train(operation, batch);
  }
}

bool LearnerTrainer::leave_out(TrainOperation operation, std::span<TrainRequest* const> requests) {
  bool left_out = false;
  for (TrainRequest* request : requests) {
    const bool trains =
        operation == TrainOperation::local_steps || operation == TrainOperation::gradient;
    left_out = !(trains ? links_->trains(request->step, static_cast<std::uint64_t>(request->steps))
                        : links_->is_whole());
    if (!left_out) continue;
    if (operation == TrainOperation::evaluate) request->evaluated = false;
    if (operation != TrainOperation::gradient) continue;
    const std::vector<float> zeros(request->gradient.size());
    device_.upload(request->gradient.data(), zeros.data(), request->gradient.size_bytes());
  }
  return left_out;
}

void LearnerTrainer::train(TrainOperation operation, std::span<TrainRequest* const> requests) {
  std::vector<train::StepRequest<float>> steps;
  for (const TrainRequest* request : requests) {
    // A gradient that is not in the account is not computed; the host ends the run.
    if (account_ != nullptr &&
        !account_->spend(request->shard_of, static_cast<std::uint64_t>(request->steps)))
      continue;
    const auto peer = static_cast<std::size_t>(request->peer);
    const auto gpu_index = static_cast<std::size_t>(device_.gpu_of(request->x.data()));
    steps.push_back({request->shard_of, request->step, request->steps, request->x.data(),
                     state_of(*request), request->gradient.data(),
                     loss_sums_.row(gpu_index).data() + peer, request->rate_lead});
    loss_counts_[peer] += static_cast<std::uint64_t>(request->steps);
  }
  operation == TrainOperation::local_steps ? learner_.local_steps(steps) : learner_.gradient(steps);
}

void LearnerTrainer::update(std::span<TrainRequest* const> requests) {
  std::vector<train::UpdateRequest<float>> updates;
  for (const TrainRequest* request : requests)
    updates.push_back({request->step, request->x.data(), state_of(*request),
                       request->gradient.data(), request->x.size(), request->peer,
                       request->rate_lead});
  learner_.update(updates);
}

void LearnerTrainer::evaluate(std::span<TrainRequest* const> requests) {
  std::vector<train::EvaluateRequest<float>> evaluations;
  for (const TrainRequest* request : requests) evaluations.push_back({request->x.data(), {}});
  learner_.evaluate(evaluations);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i]->loss = evaluations[i].result.loss;
    requests[i]->accuracy = evaluations[i].result.accuracy;
  }
}

void LearnerTrainer::batch_losses(std::span<TrainRequest* const> requests) {
  std::vector<train::LossRequest<float>> losses;
  for (const TrainRequest* request : requests)
    losses.push_back({request->shard_of, request->step, request->x.data(), 0});
  learner_.batch_loss(losses);
  for (std::size_t i = 0; i < requests.size(); ++i) requests[i]->loss = losses[i].loss;
}

void LearnerTrainer::take_losses(std::span<TrainRequest* const> requests) {
  std::vector<double> losses(requests.size()), sums(loss_sums_.length());
  // A peer's sum is on one part, and 0 on the others.
  for (std::size_t gpu_index = 0; gpu_index < loss_sums_.count(); ++gpu_index) {
    const std::span<double> on_device = loss_sums_.row(gpu_index);
    device_.download(sums.data(), on_device.data(), on_device.size_bytes());
    for (std::size_t i = 0; i < requests.size(); ++i)
      losses[i] += std::exchange(sums[static_cast<std::size_t>(requests[i]->peer)], 0);
    device_.upload(on_device.data(), sums.data(), on_device.size_bytes());
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const auto count = std::exchange(loss_counts_[static_cast<std::size_t>(requests[i]->peer)], 0);
    requests[i]->losses = count;
    requests[i]->loss = count == 0 ? std::numeric_limits<double>::quiet_NaN()
                                   : losses[i] / static_cast<double>(count);
  }
}

LossSum LearnerTrainer::loss_sum(int peer) const {
  LossSum losses;
  losses.count = loss_counts_[static_cast<std::size_t>(peer)];
  for (std::size_t gpu_index = 0; gpu_index < loss_sums_.count(); ++gpu_index) {
    double sum = 0;
    device_.download(&sum, loss_sums_.row(gpu_index).data() + peer, sizeof sum);
    losses.sum += sum;
  }
  return losses;
}

void LearnerTrainer::set_loss_sum(int peer, const LossSum& losses, const float* x) {
  loss_counts_[static_cast<std::size_t>(peer)] = losses.count;
  const auto gpu_index = static_cast<std::size_t>(device_.gpu_of(x));
  device_.upload(loss_sums_.row(gpu_index).data() + peer, &losses.sum, sizeof losses.sum);
}

}  // namespace gossamer::peer
