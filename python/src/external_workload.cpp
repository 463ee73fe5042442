#include "external_workload.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.hpp"

namespace gossamer::python {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// The program reads rows that it evaluates, and must not write them: they are const to the caller.
std::span<float> readable(std::span<const float> row) {
  return {const_cast<float*>(row.data()), row.size()};
}

/// The row of d values that `part` begins in at value `first`.
std::span<float> whole_row(std::span<float> part, std::size_t first, std::size_t d) {
  return {part.data() - first, d};
}

Request request_of(Operation operation, int peer) {
  Request request;
  request.operation = operation;
  request.peer = request.shard_of = peer;
  return request;
}

/// An optimizer of the program steps with whole rows, of d values. Of the values that other servers
/// own it has those of the start, with a gradient of zero, and nobody reads them.
void take_whole_rows(const gossip::TrainRequest& request, Request& item, std::size_t d) {
  item.x = whole_row(request.x, request.first, d);
  item.gradient = whole_row(request.gradient, request.first, d);
  std::ranges::fill(item.gradient.first(request.first), 0.0F);
  std::ranges::fill(item.gradient.subspan(request.first + request.gradient.size()), 0.0F);
}

void take_losses(std::span<gossip::TrainRequest* const> requests,
                 std::vector<peer::LossSum>& losses) {
  for (gossip::TrainRequest* request : requests) {
    const auto taken = std::exchange(losses[static_cast<std::size_t>(request->peer)], {});
    request->losses = taken.count;
    request->loss = taken.count == 0 ? kUnknown : taken.sum / static_cast<double>(taken.count);
  }
}

}  // namespace

void ExternalWorkload::initialise(int node, std::span<float> row) const {
  Request request = request_of(Operation::initialise, node);
  request.x = row;
  serve_alone(std::move(request));
}

std::vector<train::Evaluation> ExternalWorkload::evaluate(const peer::RowViews& rows,
                                                          std::span<const int> nodes) {
  std::vector<train::Evaluation> results(rows.size(), {kUnknown, kUnknown});
  if (!spec_.evaluates) return results;
  std::vector<Request> batch;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    batch.push_back(request_of(Operation::evaluate, nodes[i]));
    batch.back().x = readable(rows[i]);
  }
  if (nodes.size() > rows.size()) batch.front().averaged.assign(nodes.begin(), nodes.end());
  serve(batch);
  for (std::size_t i = 0; i < rows.size(); ++i) results[i] = batch[i].evaluation;
  return results;
}

std::string ExternalWorkload::save_state(int peer) {
  return serve_alone(request_of(Operation::save, peer)).state;
}

void ExternalWorkload::restore_state(int peer, std::string state) {
  Request request = request_of(Operation::restore, peer);
  request.state = std::move(state);
  serve_alone(std::move(request));
}

void ExternalWorkload::serve(std::vector<Request>& batch) const {
  if (!unheard_.empty()) {
    Request agreement = request_of(Operation::agree, batch.front().peer);
    agreement.scales = std::exchange(unheard_, {});
    std::vector<Request> alone{std::move(agreement)};
    handoff_.serve(alone);
  }
  handoff_.serve(batch);
}

Request ExternalWorkload::serve_alone(Request request) const {
  std::vector<Request> batch{std::move(request)};
  serve(batch);
  return std::move(batch.front());
}

void ExternalWorkload::run(gossip::TrainOperation operation,
                           std::span<gossip::TrainRequest* const> requests) {
  switch (operation) {
    case gossip::TrainOperation::take_loss: return take_losses(requests, losses_);
    case gossip::TrainOperation::local_steps: return train(Operation::local_steps, requests);
    case gossip::TrainOperation::gradient: return train(Operation::gradient, requests);
    case gossip::TrainOperation::update: return train(Operation::update, requests);
    case gossip::TrainOperation::reset: return train(Operation::reset, requests);
    case gossip::TrainOperation::batch_loss:
      GOSSAMER_CHECK(false, "a rule that reads losses is refused with a model of a program");
      return;
    case gossip::TrainOperation::evaluate: break;
  }
  peer::RowViews rows;
  std::vector<int> nodes;
  for (const gossip::TrainRequest* request : requests)
    rows.emplace_back(request->x), nodes.push_back(request->peer);
  const std::vector<train::Evaluation> results = evaluate(rows, nodes);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i]->loss = results[i].loss;
    requests[i]->accuracy = results[i].accuracy;
  }
}

void ExternalWorkload::agree(const peer::Shards& shards) {
  if (data_.features > 0) unheard_ = train::pooled_scales(shards);
  weights_.clear();
  if (!data_.weighs) return;
  double samples = 0;
  for (const train::ShardSummary& shard : shards) samples += static_cast<double>(shard.samples);
  for (const train::ShardSummary& shard : shards)
    weights_.push_back(static_cast<double>(shard.samples) * static_cast<double>(shards.size()) /
                       samples);
}

void ExternalWorkload::train(Operation operation, std::span<gossip::TrainRequest* const> requests) {
  const bool weighs = !weights_.empty() && data_.weighs_gradients;
  if (operation == Operation::local_steps && weighs) return train_weighed(requests);
  serve_all(operation, requests);
  if (operation != Operation::gradient || !weighs) return;
  for (const gossip::TrainRequest* request : requests)
    for (float& value : request->gradient)
      value *= static_cast<float>(data_weight(request->shard_of));
}

// Step by step, so that gradients can be multiplied before the program's optimizer has them.
void ExternalWorkload::train_weighed(std::span<gossip::TrainRequest* const> requests) {
  std::vector<gossip::TrainRequest> steps;
  for (const gossip::TrainRequest* request : requests) steps.push_back(*request);
  std::vector<gossip::TrainRequest*> pointers;
  for (gossip::TrainRequest& step : steps) pointers.push_back(&step);
  const int count = steps.front().steps;  // the same for all
  for (gossip::TrainRequest& step : steps) step.steps = 1;
  for (int k = 0; k < count; ++k) {
    train(Operation::gradient, pointers);
    train(Operation::update, pointers);
    for (gossip::TrainRequest& step : steps) ++step.step;
  }
}

void ExternalWorkload::serve_all(Operation operation,
                                 std::span<gossip::TrainRequest* const> requests) {
  std::vector<Request> batch;
  for (const gossip::TrainRequest* request : requests) {
    Request& item = batch.emplace_back();
    item.operation = operation;
    item.peer = request->peer;
    item.shard_of = request->shard_of;
    item.step = request->step;
    item.steps = request->steps;
    item.x = request->x;
    item.gradient = request->gradient;
    if (operation == Operation::update && request->x.size() < spec_.parameters)
      take_whole_rows(*request, item, spec_.parameters);
  }
  serve(batch);
  for (const Request& item : batch) {
    const auto peer = static_cast<std::size_t>(item.peer);
    losses_[peer].sum += item.losses.sum;
    losses_[peer].count += item.losses.count;
    if (item.rate) rates_[peer] = *item.rate;
  }
}

}  // namespace gossamer::python
