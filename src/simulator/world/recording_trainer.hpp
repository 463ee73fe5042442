// What peers of the simulated world learn: peer i minimises ½ ‖x − b_i‖², b_i random.
#pragma once

#include <map>
#include <span>

#include "gossip/trainer.hpp"
#include "simulator/scenario/scenario.hpp"
#include "simulator/world/trace_recorder.hpp"

namespace gossamer::simulator {

/// b_i of a scenario, and the row that peer i starts from.
FloatRow target_of(const Scenario& scenario, int peer);
FloatRow start_of(const Scenario& scenario, int peer);

/// Records every operation in the trace. The state of a peer's optimizer is the number of steps
/// that it has seen.
class RecordingTrainer final : public Trainer {
 public:
  /// All references outlive the trainer.
  RecordingTrainer(const Scenario& scenario, TraceRecorder& recorder)
      : scenario_(scenario), recorder_(recorder) {}
  void run(TrainOperation operation, std::span<TrainRequest* const> requests) override;
  double rate(int, std::uint64_t) const override { return scenario_.steps.rate; }
  std::size_t shard_size(int) const override { return 1; }
  std::uint64_t batches_per_epoch(int) const override { return 1; }
  bool keeps_state() const override { return true; }

 private:
  const Scenario& scenario_;
  TraceRecorder& recorder_;
  std::map<int, FloatRow> targets_;
  std::map<int, std::uint64_t> kept_steps_;  ///< by peer
};

}  // namespace gossamer::simulator
