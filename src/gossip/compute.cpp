#include "gossip/compute.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/check.hpp"

namespace gossamer::gossip {

Compute::Compute(Scheduler& scheduler, Executor& executor, gpu::Device& device, Trainer* trainer,
                 const StepTimes& step_times)
    : scheduler_(scheduler),
      executor_(executor),
      device_(device),
      trainer_(trainer),
      step_times_(step_times) {
  scheduler_.set_idle_work(this);
}

Compute::~Compute() { scheduler_.set_idle_work(nullptr); }

void Compute::enqueue(TrainOperation operation, TrainRequest& request,
                      std::coroutine_handle<> waiter) {
  GOSSAMER_CHECK(trainer_ != nullptr, "a run without a trainer requests training");
  // Only gradients take virtual time: an update is arithmetic on a row, and evaluation is not
  // training.
  const bool timed =
      operation == TrainOperation::local_steps || operation == TrainOperation::gradient;
  training_.push_back({operation, &request, waiter,
                       scheduler_.now() + (timed ? step_times_.of(request) : Time{0})});
}

void Compute::run_checks() {
  if (range_checks_.empty()) return;
  device_.execute(range_checks_);
  range_checks_.clear();
}

bool Compute::run_pending(Time next_event) {
  run_checks();
  if (!handovers_.empty()) {
    // After them more peers of this process may train in the same batch.
    if (run_row_operations()) return true;
    run_training(next_event);
    for (const std::coroutine_handle<> waiter : std::exchange(handovers_, {}))
      scheduler_.post(waiter);
    return true;
  }
  if (!mixes_.empty()) {
    run_mixes();
    return true;
  }
  return run_row_operations() || run_training(next_event);
}

bool Compute::run_row_operations() {
  const auto execute = [this](auto requests) { device_.execute(requests); };
  bool ran = false;
  std::apply([&](auto&... queue) { ((ran |= run_rows(queue, execute)), ...); }, row_queues_);
  ran |= run_rows(encodes_, [this](const auto& requests) {
    run_coded(requests,
              [this](const Codec& codec, const auto& batch) { codec.encode(device_, batch); });
  });
  ran |= run_rows(decodes_, [this](const auto& requests) {
    run_coded(requests,
              [this](const Codec& codec, const auto& batch) { codec.decode(device_, batch); });
  });
  return ran;
}

void Compute::run_mixes() {
  std::vector<Mixing> mixes = std::exchange(mixes_, {});
  mix_batch_.clear();
  for (const Mixing& mixing : mixes) mix_batch_.push_back(*mixing.piece);
  const Time begin = scheduler_.now();
  device_.execute(mix_batch_);
  const double seconds = gossip::seconds(scheduler_.now() - begin);
  for (const Mixing& mixing : mixes)
    mixing.listener->mixed(*mixing.piece, seconds / static_cast<double>(mixes.size()));
  mixes.clear();
  if (mixes_.empty()) mixes_.swap(mixes);  // keeps the capacity
}

template <class Request, class Serve>
bool Compute::run_rows(RowQueue<Request>& queue, Serve serve) {
  if (queue.requests.empty()) return false;
  serve(std::span<const Request>(queue.requests));
  for (std::coroutine_handle<> waiter : queue.waiters) scheduler_.post(waiter);
  queue.requests.clear();
  queue.waiters.clear();
  return true;
}

// A run has one codec: the requests of a batch with the same codec are adjacent.
template <class Request, class Serve>
void Compute::run_coded(std::span<const CodecRequest<Request>> requests, Serve serve) {
  std::vector<Request> batch;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    batch.push_back(requests[i].request);
    if (i + 1 < requests.size() && requests[i + 1].codec == requests[i].codec) continue;
    serve(*requests[i].codec, batch);
    batch.clear();
  }
}

/// False if no request is due. Requests that arrive while a batch is in flight form the next one.
bool Compute::run_training(Time next_event) {
  if (training_.empty() || batches_in_flight_ > 0) return false;
  const auto first =
      std::min_element(training_.begin(), training_.end(),
                       [](const Training& a, const Training& b) { return a.due < b.due; });
  if (first->due > scheduler_.now() && first->due > next_event) return false;
  auto batch = std::make_shared<std::vector<Training>>(std::exchange(training_, {}));
  // Groups of equal operation and number of steps; within a group the order of the requests.
  std::stable_sort(batch->begin(), batch->end(), [](const Training& a, const Training& b) {
    return std::pair(a.operation, a.request->steps) < std::pair(b.operation, b.request->steps);
  });
  auto work = [this, batch] {
    std::vector<TrainRequest*> group;
    for (std::size_t i = 0; i < batch->size(); ++i) {
      const Training& current = (*batch)[i];
      group.push_back(current.request);
      const bool last = i + 1 == batch->size();
      if (last || (*batch)[i + 1].operation != current.operation ||
          (*batch)[i + 1].request->steps != current.request->steps) {
        // By peer: the order of the requests changes from round to round, and a GPU replays the
        // steps that it has captured only for the same peers in the same order.
        std::ranges::stable_sort(group, {}, &TrainRequest::peer);
        trainer_->run(current.operation, group);
        group.clear();
      }
    }
  };
  auto done = [this, batch] {
    --batches_in_flight_;
    for (const Training& training : *batch) {
      if (training.due <= scheduler_.now()) scheduler_.post(training.waiter);
      else
        scheduler_.at(training.due, [this, waiter = training.waiter] { scheduler_.post(waiter); });
    }
  };
  ++batches_in_flight_;
  executor_.execute(std::move(work), std::move(done));
  return true;
}

}  // namespace gossamer::gossip
