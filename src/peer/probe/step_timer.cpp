#include "peer/probe/step_timer.hpp"

#include <algorithm>

namespace gossamer::peer {

StepTimer::StepTimer(const Setup& setup, const std::vector<int>& hosted) : setup_(setup) {
  std::vector<int> peers = hosted;
  std::erase_if(peers, [&setup](int node) { return setup.is_server(node); });
  if (!setup.trains() || peers.empty()) return;
  const std::size_t state_rows = setup.workload->spec().optimizer_rows.size();
  for (std::size_t k = 0; k < 2 + state_rows; ++k)
    rows_.emplace_back(*setup.device, peers.size(), setup.parameters);
  states_.resize(peers.size());
  std::vector<float> initial(setup.parameters);
  for (std::size_t i = 0; i < peers.size(); ++i) {
    setup.workload->initialise(peers[i], initial);
    const std::span<float> x = rows_[0].row(i);
    setup.device->upload(x.data(), initial.data(), x.size_bytes());
    for (std::size_t k = 0; k < state_rows; ++k) states_[i].push_back(rows_[2 + k].row(i));
    gossip::TrainRequest request;
    request.peer = request.shard_of = peers[i];
    request.x = x;
    request.gradient = rows_[1].row(i);
    request.state = states_[i];
    requests_.push_back(request);
  }
}

std::uint64_t StepTimer::steps_per_round() const {
  return std::max<std::uint64_t>(setup_.steps_per_round(requests_.front().peer), 1);
}

void StepTimer::run(int steps) {
  std::vector<gossip::TrainRequest*> batch;
  for (gossip::TrainRequest& request : requests_) {
    request.steps = steps;
    batch.push_back(&request);
  }
  setup_.workload->trainer()->run(gossip::TrainOperation::local_steps, batch);
  setup_.device->finish();
  for (gossip::TrainRequest& request : requests_) request.step += static_cast<std::uint64_t>(steps);
}

}  // namespace gossamer::peer
