#include "simulator/world/recording_trainer.hpp"

#include <utility>

#include "base/philox.hpp"

namespace gossamer::simulator {
namespace {

FloatRow normal_row(const Scenario& scenario, int peer, std::uint64_t step) {
  RandomStream random(scenario.seed, static_cast<std::uint32_t>(peer), Purpose::scenario, step);
  FloatRow row(static_cast<std::size_t>(scenario.length));
  for (float& value : row) value = static_cast<float>(random.next_normal());
  return row;
}

}  // namespace

FloatRow target_of(const Scenario& scenario, int peer) { return normal_row(scenario, peer, 2); }
FloatRow start_of(const Scenario& scenario, int peer) { return normal_row(scenario, peer, 3); }

void RecordingTrainer::run(TrainOperation operation, std::span<TrainRequest* const> requests) {
  for (TrainRequest* request : requests) {
    std::uint64_t& kept_steps = kept_steps_[request->peer];
    if (operation == TrainOperation::reset) {
      kept_steps = 0;
      continue;
    }
    FloatRow& target = targets_[request->shard_of];
    if (target.empty()) target = target_of(scenario_, request->shard_of);
    TrainRecord trained{operation, copy_of(request->x), {}, {}, kept_steps};
    if (operation != TrainOperation::gradient)
      kept_steps += static_cast<std::uint64_t>(request->steps);
    const auto rate = static_cast<float>(scenario_.steps.rate);
    for (int step = 0; step < request->steps; ++step)
      for (std::size_t k = 0; k < request->x.size(); ++k) {
        if (operation != TrainOperation::update) request->gradient[k] = request->x[k] - target[k];
        if (operation != TrainOperation::gradient) request->x[k] -= rate * request->gradient[k];
      }
    trained.gradient = copy_of(request->gradient.first(request->x.size()));
    trained.after = copy_of(request->x);
    recorder_.incarnation(request->peer).rounds.back().trained.push_back(std::move(trained));
  }
}

}  // namespace gossamer::simulator
