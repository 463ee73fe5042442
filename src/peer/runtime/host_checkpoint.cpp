// A host's nodes between two rounds: written to a checkpoint, and restored from one.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "base/id_list.hpp"
#include "peer/checkpoint/saved_rows.hpp"
#include "peer/runtime/host.hpp"

namespace gossamer::peer {

/// Waits until `work` has been done where training runs. (Not in an anonymous namespace: it is kept
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

NodeSnapshot Host::snapshot(gossip::PeerEngine& engine) {
  gossip::PeerState state = engine.state();
  NodeSnapshot snapshot;
  snapshot.round = state.round;
  snapshot.wall_seconds = log_.wall_seconds();
  snapshot.state = {.node = engine.id(),
                    .steps = state.steps,
                    .counters = std::move(state.counters),
                    .metrics = log_.metrics_of(engine),
                    .program = {},
                    .participants = {},
                    .rounds_left_out = state.rounds_left_out};
  if (changing_ && state.round > 0)
    snapshot.state.participants = ids_text(changing_->participants().at(state.round - 1).peers);
  // Messages that wait here are of later rounds, and will be sent again.
  snapshot.state.metrics.traffic.bytes_received -=
      engine.node().endpoint().messenger().unread_bytes();
  for (const std::span<float> row : engine.state_rows()) snapshot.rows.emplace_back(row);
  return snapshot;
}

gossip::task<void> Host::save(gossip::PeerEngine& engine) {
  if (Status checked = engine.node().endpoint().flush_checks(); !checked.ok()) {
    fail(with_advice(setup_, checked.error()));
    co_return;
  }
  NodeSnapshot taken = snapshot(engine);
  Status status;
  const std::function<void()> work = [this, &taken, &status] {
    status = request_.checkpointer->add(std::move(taken));
  };
  OnExecutor written(executor_, scheduler_, work);
  co_await written;
  if (!status.ok()) request_.message(status.error().message);
}

Status Host::restore(const SavedStates& saved) {
  GOSSAMER_CHECK(saved.nodes.size() == setup_.counted(request_.hosted, saved.round).size(),
                 "the states of all hosted nodes that count");
  first_round_ = saved.round;
  log_.set_earlier_wall_seconds(saved.wall_seconds);
  for (const auto& engine : group_.engines()) engine->begin_at(saved.round);
  for (const SavedStates::Node& node : saved.nodes)
    GOSSAMER_TRY_STATUS(restore(group_.engine(node.state.node), saved.round, node));
  setup_.device->finish();
  return {};
}

Status Host::restore(gossip::PeerEngine& engine, gossip::Round round,
                     const SavedStates::Node& saved) {
  const NodeState& state = saved.state;
  if (const std::size_t counters = engine.node().counters().size();
      state.counters.size() != counters)
    return data_error(fmt::format("{} has {} counters of node {}, not {}", saved.tensors.string(),
                                  state.counters.size(), state.node, counters));
  GOSSAMER_TRY(const SavedRows saved_rows, SavedRows::open(setup_, saved));
  const std::vector<std::span<float>> rows = engine.state_rows();
  std::vector<float> values;
  for (const StateTensor& piece : state_tensors(setup_, state.node)) {
    values.resize(piece.length);
    GOSSAMER_TRY_STATUS(saved_rows.read(piece, values));
    setup_.device->upload(rows[piece.row].data() + piece.first, values.data(),
                          values.size() * sizeof(float));
  }
  const bool others_took_part =
      !state.participants.empty() &&
      state.participants != ids_text(setup_.schedule->participants().at(0).peers);
  engine.restore({round, state.steps, state.counters, !others_took_part, state.rounds_left_out});
  if (others_took_part) log_.forget_participants();
  engine.node().set_times(state.metrics.times);
  if (setup_.trains()) GOSSAMER_TRY_STATUS(restore_workload(engine, saved));
  NodeMetrics metrics = state.metrics;
  // What a whole replica has sent counts once: at the worker of its first part.
  if (!saved.part && setup_.part.value_or(0) > 0) metrics.traffic = {};
  log_.restore(engine.id(), metrics);
  return {};
}

Status Host::restore_workload(gossip::PeerEngine& engine, const SavedStates::Node& saved) {
  const NodeState& state = saved.state;
  if (!engine.node().is_server())
    setup_.workload->set_loss_sum(engine.id(), state.metrics.loss, engine.node().x().data());
  if (!state.program) return {};
  GOSSAMER_TRY(std::string bytes, read_program_state(state_path(saved.tensors), *state.program));
  setup_.workload->restore_state(engine.id(), std::move(bytes));
  return {};
}

}  // namespace gossamer::peer
