// A host's nodes between two rounds: what the log counts of them, into a checkpoint, and out of
// one.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "peer/runtime/host.hpp"

namespace gossamer::peer {

/// Waits until `work` has been done where training is. (Not in an anonymous namespace: it is kept
/// in a coroutine's frame.)
struct OnExecutor {
  OnExecutor(gossip::Executor& executor_in, gossip::Scheduler& scheduler_in,
             std::function<void()> work_in)
      : executor(executor_in), scheduler(scheduler_in), work(std::move(work_in)) {}
  gossip::Executor& executor;
  gossip::Scheduler& scheduler;
  std::function<void()> work;
  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> waiter) {
    executor.execute(std::move(work), [waiter, &scheduler = scheduler] { scheduler.post(waiter); });
  }
  void await_resume() const {}
};

NodeMetrics Host::metrics_of(Member& member) {
  gossip::Node& node = *member.node;
  NodeMetrics& before = member.before;
  const gossip::Staleness staleness = node.take_staleness();
  before.staleness.pushes += staleness.pushes;
  before.staleness.sum += staleness.sum;
  before.staleness.largest = std::max(before.staleness.largest, staleness.largest);
  NodeMetrics figures = before;
  figures.time = clock_begin_ + scheduler_.now();
  figures.traffic = traffic_of(node.id());
  figures.times = node.times();
  figures.mix_seconds += node.endpoint().mix_seconds();
  return figures;
}

NodeSnapshot Host::snapshot(Member& member) {
  gossip::Node& node = *member.node;
  NodeSnapshot snapshot;
  snapshot.round = member.round;
  snapshot.wall_seconds =
      wall_seconds_before_ +
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
  snapshot.state = {node.id(),
                    node.steps_done(),
                    {node.counters().begin(), node.counters().end()},
                    metrics_of(member)};
  // What waits here is of later rounds, and will be sent again.
  snapshot.state.figures.traffic.bytes_received -= node.endpoint().waiting_bytes();
  for (std::size_t k = 0; k < specs_.size(); ++k)
    snapshot.rows.emplace_back(node.row(static_cast<int>(k)));
  const auto index = static_cast<std::size_t>(&member - members_.data());
  for (auto& rows : states_) snapshot.rows.emplace_back(rows.row(index));
  return snapshot;
}

gossip::task<void> Host::save(Member& member) {
  if (Status settled = member.node->endpoint().flush_checks(); !settled.ok()) {
    fail(with_advice(settled.error()));
    co_return;
  }
  NodeSnapshot taken = snapshot(member);
  Status status;
  const std::function<void()> work = [this, &taken, &status] {
    status = request_.checkpointer->add(std::move(taken));
  };
  OnExecutor written(executor_, scheduler_, work);
  co_await written;
  if (!status.ok()) request_.message(status.error().message);
}

Status Host::restore(const SavedStates& saved) {
  GOSSAMER_CHECK(saved.nodes.size() == members_.size(), "the states of all hosted nodes");
  first_round_ = saved.round;
  wall_seconds_before_ = saved.wall_seconds;
  for (std::size_t i = 0; i < members_.size(); ++i)
    GOSSAMER_TRY_STATUS(restore(members_[i], saved.nodes[i]));
  setup_.device->finish();
  return {};
}

Status Host::restore(Member& member, const SavedStates::Node& saved) {
  gossip::Node& node = *member.node;
  const NodeState& state = saved.state;
  GOSSAMER_CHECK(state.node == node.id(), "states in the order of the nodes");
  if (state.counters.size() != node.counters().size())
    return Error{ErrorKind::data,
                 fmt::format("{} has {} counters of node {}, not {}", saved.tensors.string(),
                             state.counters.size(), node.id(), node.counters().size())};
  GOSSAMER_TRY(SafetensorsFile file, SafetensorsFile::open(saved.tensors));
  const auto index = static_cast<std::size_t>(&member - members_.data());
  std::vector<float> values;
  for (const StatePiece& piece : state_pieces(setup_, node.id())) {
    const TensorPlace* place = file.head().find(piece.name);
    if (place == nullptr || place->values != piece.length)
      return Error{ErrorKind::data, fmt::format("{} has no tensor {} of {} values",
                                                saved.tensors.string(), piece.name, piece.length)};
    values.resize(piece.length);
    GOSSAMER_TRY_STATUS(file.read(*place, 0, values));
    const std::span<float> row = piece.row < specs_.size()
                                     ? node.row(static_cast<int>(piece.row))
                                     : states_[piece.row - specs_.size()].row(index);
    setup_.device->upload(row.data() + piece.first, values.data(), values.size() * sizeof(float));
  }
  node.set_steps_done(state.steps);
  node.set_times(state.figures.times);
  std::ranges::copy(state.counters, node.counters().begin());
  setup_.algorithm->resume(node.id(), first_round_, node.counters(), *setup_.schedule);
  if (setup_.trainer && !node.is_server())
    setup_.trainer->set_losses(node.id(), state.figures.loss, node.x().data());
  member.round = first_round_;
  member.begins_again = exchange_.options().policy == gossip::Policy::stale ||
                        exchange_.options().policy == gossip::Policy::async;
  member.before = state.figures;
  ports_[node.id()].traffic = state.figures.traffic;
  return {};
}

}  // namespace gossamer::peer
