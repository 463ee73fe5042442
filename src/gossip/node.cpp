#include "gossip/node.hpp"

#include <algorithm>

namespace gossamer::gossip {

Node::Node(Exchange& exchange, int id, int peers, const std::vector<RowSpec>& rows,
           const NodeMemory& memory)
    : exchange_(exchange),
      endpoint_(exchange.endpoint(id)),
      id_(id),
      peers_(peers),
      specs_(rows),
      memory_(memory),
      counters_(memory.counters) {
  for (std::size_t k = 0; k < rows.size(); ++k) {
    rows_.push_back(std::make_unique<MixedRow>());
    rows_.back()->front().attach(exchange.scheduler(), memory.front[k]);
    if (rows[k].mixed) rows_.back()->back().attach(exchange.scheduler(), memory.back[k]);
  }
  gradient_lender_.attach(exchange.scheduler(), memory.gradient);
}

task<void> Node::local_steps(std::span<float> x, int steps) {
  TrainRequest request = request_for(x, memory_.gradient);
  request.steps = steps;
  co_await train(TrainOperation::local_steps, request);
  steps_done_ += static_cast<std::uint64_t>(steps);
}

void Node::begin_local_steps(std::span<float> x, int steps) {
  GOSSAMER_CHECK(!stepping_, "local steps begin beside others");
  stepping_ = true;
  steps_ = step_aside(x, steps);
  steps_.start(exchange_.scheduler());
}

task<void> Node::step_aside(std::span<float> x, int steps) {
  co_await local_steps(x, steps);
  stepping_ = false;
  endpoint_.notify();
}

task<void> Node::wait_event() {
  const Time begin = exchange_.scheduler().now();
  const bool waits = !stepping_;
  co_await endpoint_.wait_event();
  if (waits) times_.wait_seconds += seconds(exchange_.scheduler().now() - begin);
}

task<void> Node::gradient(std::span<float> x, std::span<float> g, int shard_of) {
  TrainRequest request = request_for(x, g);
  if (shard_of != kOwnShard) request.shard_of = shard_of;
  co_await train(TrainOperation::gradient, request);
}

task<void> Node::update_part(std::span<float> x, std::span<float> g, std::size_t first,
                             std::uint64_t step) {
  TrainRequest request = request_for(x, g);
  request.step = step;
  std::vector<std::span<float>> state;
  for (const std::span<float> row : memory_.state) state.push_back(row.subspan(first, x.size()));
  request.state = state;
  co_await train(TrainOperation::update, request);
  ++steps_done_;
}

bool Node::keeps_sums() const {
  return std::ranges::any_of(specs_, [](const RowSpec& row) { return row.conserved_sum; });
}

task<void> Node::restart_rows() {
  for (std::size_t k = 0; k < specs_.size(); ++k)
    if (specs_[k].survives && specs_[k].rejoin != RowSpec::Rejoin::from_neighbour)
      co_await restart(k);
}

task<void> Node::restart_sums() {
  for (std::size_t k = 0; k < specs_.size(); ++k)
    if (specs_[k].survives && specs_[k].rejoin == RowSpec::Rejoin::restart) co_await restart(k);
}

task<void> Node::restart(std::size_t k) {
  const std::span<float> row = this->row(static_cast<int>(k)),
                         values = row.first(row.size() - specs_[k].extra);
  co_await fill(row.subspan(values.size()), specs_[k].extra_start);
  if (specs_[k].initial == RowSpec::Initial::parameters)
    co_await copy(x().first(values.size()), values);
  else co_await fill(values, 0.0F);
}

void Node::send_state(int to) {
  for (std::size_t k = 0; k < specs_.size(); ++k)
    if (specs_[k].is_transferred())
      endpoint_.send_copy(to, 0, endpoint_.state_channel(), row(static_cast<int>(k)));
}

task<bool> Node::receive_state(int donor) {
  bool whole = true;
  for (std::size_t k = 0; k < specs_.size() && whole; ++k)
    if (specs_[k].is_transferred()) {
      const std::span<float> row = this->row(static_cast<int>(k));
      whole = co_await endpoint_.receive_whole(donor, 0, endpoint_.state_channel(), row,
                                               Combine::replace);
    }
  co_return whole;
}

task<void> Node::reset_optimizer() {
  for (const std::span<float> row : memory_.state) co_await fill(row, 0.0F);
}

TrainRequest Node::request_for(std::span<float> x, std::span<float> g) const {
  TrainRequest request;
  request.peer = request.shard_of = id_;
  request.step = steps_done_;
  request.rate_lead = rate_lead_;
  request.x = x;
  request.gradient = g;
  request.state = memory_.state;
  return request;
}

task<void> Node::train(TrainOperation operation, TrainRequest request) {
  const Time begin = exchange_.scheduler().now();
  co_await exchange_.compute().train(operation, request);
  times_.train_seconds += seconds(exchange_.scheduler().now() - begin);
}

task<Node::Evaluation> Node::evaluate() {
  TrainRequest request;
  request.peer = request.shard_of = id_;
  request.x = x();
  co_await exchange_.compute().train(TrainOperation::evaluate, request);
  const Evaluation evaluation{request.loss, request.accuracy};
  co_return evaluation;
}

task<void> Node::mix(Round t, int k) {
  co_await begin_mix(t, k);
  co_await finish_mix(k);
}

task<void> Node::begin_mix(Round t, int k) {
  return endpoint_.begin_mix(t, static_cast<Channel>(k), *rows_[static_cast<std::size_t>(k)]);
}

task<void> Node::finish_mix(int k) {
  const Time begin = exchange_.scheduler().now();
  const double mixing = endpoint_.mix_seconds();
  co_await endpoint_.finish_mix(static_cast<Channel>(k), *rows_[static_cast<std::size_t>(k)]);
  const double seconds = gossip::seconds(exchange_.scheduler().now() - begin);
  times_.wait_seconds += std::max(0.0, seconds - (endpoint_.mix_seconds() - mixing));
}

task<std::vector<NeighbourRow>> Node::share(Round since, int k) {
  const Time begin = exchange_.scheduler().now();
  std::vector<NeighbourRow> rows = co_await endpoint_.share(since, channel(k), row(k), lender(k));
  times_.wait_seconds += seconds(exchange_.scheduler().now() - begin);
  co_return rows;
}

void Node::send(int to, Round t, int k, std::span<const float> part) {
  endpoint_.send(std::span(&to, 1), t, channel(k), part, lender(k));
}

task<void> Node::receive(int from, Round t, int k, std::span<float> into, Combine combine) {
  const Time begin = exchange_.scheduler().now();
  co_await endpoint_.receive(from, t, channel(k), into, combine);
  times_.wait_seconds += seconds(exchange_.scheduler().now() - begin);
}

task<void> Node::send_coded(Round t, int k, std::span<float> own) {
  co_await endpoint_.send_coded(t, channel(k), row(k), own, Combine::add);
}

task<void> Node::receive_coded(int from, Round t, int k, std::span<float> into) {
  const Time begin = exchange_.scheduler().now();
  const double mixing = endpoint_.mix_seconds();
  const bool heard = co_await endpoint_.receive_coded(from, t, channel(k), into, Combine::add);
  GOSSAMER_CHECK(heard, "a peer was lost under an algorithm that needs everybody");
  const double seconds = gossip::seconds(exchange_.scheduler().now() - begin);
  times_.wait_seconds += std::max(0.0, seconds - (endpoint_.mix_seconds() - mixing));
}

task<MessageOrigin> Node::receive_any(int k, std::span<float> into, Combine combine) {
  const Time begin = exchange_.scheduler().now();
  const MessageOrigin received = co_await endpoint_.receive_any(channel(k), into, combine);
  times_.wait_seconds += seconds(exchange_.scheduler().now() - begin);
  co_return received;
}

void Node::note_staleness(std::uint64_t updates) {
  ++staleness_.pushes;
  staleness_.sum += updates;
  staleness_.largest = std::max(staleness_.largest, updates);
}

std::vector<std::size_t> row_lengths(const std::vector<RowSpec>& rows, std::size_t d) {
  std::vector<std::size_t> lengths;
  for (const RowSpec& row : rows) lengths.push_back(row.length(d));
  lengths.push_back(d);  // the gradient's
  return lengths;
}

std::vector<bool> rows_that_keep_sums(const std::vector<RowSpec>& rows) {
  std::vector<bool> keep;
  for (const RowSpec& row : rows) keep.push_back(!keep.empty() && row.conserved_sum);
  return keep;
}

task<double> Node::take_train_loss() {
  TrainRequest request;
  request.peer = request.shard_of = id_;
  co_await exchange_.compute().train(TrainOperation::take_loss, request);
  co_return request.loss;
}

}  // namespace gossamer::gossip
