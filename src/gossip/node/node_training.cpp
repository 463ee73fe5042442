#include "gossip/node/node_training.hpp"

#include <vector>

namespace gossamer::gossip {

task<void> NodeTraining::local_steps(std::span<float> x, int steps) {
  TrainRequest request = request_for(x, memory_.gradient);
  request.steps = steps;
  co_await train(TrainOperation::local_steps, request);
  steps_done_ += static_cast<std::uint64_t>(steps);
}

void NodeTraining::begin_local_steps(std::span<float> x, int steps) {
  GOSSAMER_CHECK(!local_steps_running_, "local steps begin beside others");
  local_steps_running_ = true;
  concurrent_steps_ = run_local_steps(x, steps);
  concurrent_steps_.start(exchange_.scheduler());
}

task<void> NodeTraining::run_local_steps(std::span<float> x, int steps) {
  co_await local_steps(x, steps);
  local_steps_running_ = false;
  endpoint_.messenger().notify();
}

task<void> NodeTraining::gradient(std::span<float> x, std::span<float> g, int shard_of) {
  TrainRequest request = request_for(x, g);
  if (shard_of != kOwnShard) request.shard_of = shard_of;
  co_await train(TrainOperation::gradient, request);
}

task<void> NodeTraining::update_part(std::span<float> x, std::span<float> g, std::size_t first,
                                     std::uint64_t step) {
  TrainRequest request = request_for(x, g);
  request.step = step;
  request.first = first;
  std::vector<std::span<float>> state;
  for (const std::span<float> row : memory_.state) state.push_back(row.subspan(first, x.size()));
  request.state = state;
  co_await train(TrainOperation::update, request);
  ++steps_done_;
}

task<void> NodeTraining::reset_optimizer() {
  for (const std::span<float> row : memory_.state) co_await fill(row, 0.0F);
  const Trainer* trainer = exchange_.compute().trainer();
  if (trainer != nullptr && trainer->keeps_state())
    co_await train(TrainOperation::reset, request_for({}, {}));
}

TrainRequest NodeTraining::request_for(std::span<float> x, std::span<float> g) const {
  TrainRequest request;
  request.peer = request.shard_of = id();
  request.step = steps_done_;
  request.rate_lead = rate_lead_;
  request.x = x;
  request.gradient = g;
  request.state = memory_.state;
  return request;
}

task<void> NodeTraining::train(TrainOperation operation, TrainRequest request) {
  const Time begin = exchange_.scheduler().now();
  co_await exchange_.compute().train(operation, request);
  times_.train_seconds += seconds(exchange_.scheduler().now() - begin);
}

task<std::optional<NodeTraining::Evaluation>> NodeTraining::evaluate() {
  TrainRequest request;
  request.peer = request.shard_of = id();
  request.x = x();
  co_await exchange_.compute().train(TrainOperation::evaluate, request);
  std::optional<Evaluation> evaluation;
  if (request.evaluated) evaluation = Evaluation{request.loss, request.accuracy};
  co_return evaluation;
}

task<std::optional<double>> NodeTraining::take_train_loss() {
  TrainRequest request;
  request.peer = request.shard_of = id();
  co_await exchange_.compute().train(TrainOperation::take_loss, request);
  std::optional<double> loss;
  if (request.losses > 0) loss = request.loss;
  co_return loss;
}

}  // namespace gossamer::gossip
