#include "train/split/replica_worker.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace gossamer::train {
namespace {

/// Pieces of an evaluation that the first worker may be ahead of the last one: they wait in the
/// memory of the workers between.
constexpr std::size_t kPiecesAhead = 32;

/// agree(): of an evaluation.
constexpr double kEvaluates = -1;
std::string text_of_call(double call) {
  return call < 0 ? "evaluates" : "begins local step " + std::to_string(std::llround(call));
}

}  // namespace

template <class Real>
ReplicaWorker<Real>::ReplicaWorker(Worker<Real> worker, SplitModel training, SplitModel evaluation,
                                   SplitOptions options, gpu::BasicDevice<Real>& device)
    : worker_(worker),
      training_(std::move(training)),
      evaluation_(std::move(evaluation)),
      options_(std::move(options)),
      device_(device) {}

template <class Real>
std::size_t ReplicaWorker<Real>::workspace_bytes(int batch) const {
  return std::max(PipelinedGradient<Real>::worker_bytes(training_, worker_.part,
                                                        options_.microbatches_of(batch)),
                  gpu::DeviceRows<Real>::bytes(1, part_of(evaluation_).workspace));
}

template <class Real>
void ReplicaWorker<Real>::allocate(const Real* parameters, std::size_t values) {
  const int gpu_index = device_.gpu_of(parameters);
  if (sums_.count() == 0) {
    sums_ = gpu::DeviceRows<double>::on_gpu(device_, gpu_index, 1, 2);
    hits_ = gpu::DeviceRows<std::int64_t>::on_gpu(device_, gpu_index, 1, 1);
  }
  if (workspace_.length() >= values) return;
  workspace_ = {};  // the smaller one is not held beside it
  workspace_ = gpu::DeviceRows<Real>::on_gpu(device_, gpu_index, 1, values);
}

template <class Real>
void ReplicaWorker<Real>::gradient(const gpu::Task& task, const PipelinedRequest<Real>& request) {
  const int microbatches = options_.microbatches_of(request.batch);
  const Pipeline pipeline = Pipeline::of(training_, microbatches);
  const int stage = part_of(training_).stage;
  const auto in_flight = static_cast<std::size_t>(pipeline.in_flight(stage));
  const std::size_t each =
      gpu::DeviceRows<Real>::bytes(1, part_of(training_).workspace) / sizeof(Real);
  allocate(request.parameters, in_flight * each);
  agree(static_cast<double>(request.step));
  Sums sums;
  device_.upload(sums_.row(0).data(), &sums, sizeof sums);
  for (const PipelineStep& step : pipeline.order_of(stage)) {
    const Microbatch piece = Microbatch::of(request.batch, microbatches, step.microbatch);
    const std::size_t place = static_cast<std::size_t>(step.microbatch) % in_flight;
    const gpu::PartJob<Real> job{.workspace = workspace_.row(0).data() + place * each,
                                 .parameters = request.parameters,
                                 .gradient = request.gradient,
                                 .samples = request.samples + piece.first,
                                 .batch = piece.size,
                                 .whole_batch = request.batch,
                                 .first = step.microbatch == 0,
                                 .last = step.microbatch + 1 == microbatches,
                                 .weight = request.weight,
                                 .loss_sum = sums_.row(0).data(),
                                 .loss = sums_.row(0).data() + 1};
    pass(training_, task, step.is_backward, job);
  }
  if (has_loss()) device_.download(&sums, sums_.row(0).data(), sizeof sums);
  share(std::span(&sums.loss, 1));
  double loss = 0;
  device_.download(&loss, request.loss, sizeof loss);
  loss += sums.loss;
  device_.upload(request.loss, &loss, sizeof loss);
}

template <class Real>
void ReplicaWorker<Real>::score(const gpu::Task& task, ScoreRequest<Real>& request) {
  allocate(request.parameters, part_of(evaluation_).workspace);
  std::span<const Piece> pieces = request.pieces;
  while (!pieces.empty()) {
    agree(kEvaluates);
    const std::size_t count = std::min(kPiecesAhead, pieces.size());
    for (const Score& score : score_some(task, request.parameters, pieces.first(count)))
      request.scores.push_back(score);
    pieces = pieces.subspan(count);
  }
}

template <class Real>
std::vector<Score> ReplicaWorker<Real>::score_some(const gpu::Task& task, const Real* parameters,
                                                   std::span<const Piece> pieces) {
  std::vector<double> numbers(2 * pieces.size());
  for (std::size_t k = 0; k < pieces.size(); ++k) {
    Sums sums;
    std::int64_t hits = 0;
    device_.upload(sums_.row(0).data(), &sums, sizeof sums);
    device_.upload(hits_.row(0).data(), &hits, sizeof hits);
    const auto batch = static_cast<int>(pieces[k].size());
    pass(evaluation_, task, false,
         {.workspace = workspace_.row(0).data(),
          .parameters = parameters,
          .samples = pieces[k].data(),
          .batch = batch,
          .whole_batch = batch,
          .first = true,
          .last = true,
          .loss_sum = sums_.row(0).data(),
          .loss = sums_.row(0).data() + 1,
          .hits = hits_.row(0).data()});
    if (!has_loss()) continue;
    device_.download(&sums, sums_.row(0).data(), sizeof sums);
    device_.download(&hits, hits_.row(0).data(), sizeof hits);
    numbers[2 * k] = sums.loss;
    numbers[2 * k + 1] = static_cast<double>(hits);
  }
  share(numbers);
  std::vector<Score> scores;
  for (std::size_t k = 0; k < pieces.size(); ++k)
    scores.push_back({numbers[2 * k], static_cast<std::int64_t>(numbers[2 * k + 1])});
  return scores;
}

template <class Real>
void ReplicaWorker<Real>::pass(const SplitModel& model, gpu::Task task, bool is_backward,
                               const gpu::PartJob<Real>& job) {
  const std::vector<Message>& messages = is_backward ? model.gradients() : model.outputs();
  const auto worker_of = [&](int segment) {
    return model.segments()[static_cast<std::size_t>(segment)].worker;
  };
  const auto values = [&](const Message& message) {
    return message.values * static_cast<std::size_t>(job.batch);
  };
  // What another worker sends to this one arrives in the order in which it is sent, which need not
  // be that in which segments take it.
  std::vector<bool> is_here(messages.size());
  const auto receive_until = [&](std::size_t wanted) {
    const int from = worker_of(messages[wanted].from);
    for (std::size_t m = 0; m <= wanted; ++m) {
      if (is_here[m] || worker_of(messages[m].from) != from ||
          worker_of(messages[m].to) != worker_.part)
        continue;
      receive(from, job.workspace + messages[m].at_to, values(messages[m]));
      is_here[m] = true;
    }
  };
  const auto receive_all = [&](int segment, bool is_begun) {
    for (std::size_t m = 0; m < messages.size(); ++m)
      if (messages[m].to == segment && messages[m].is_begun == is_begun) receive_until(m);
  };
  const auto send_all = [&](int segment) {
    for (const Message& message : messages)
      if (message.from == segment)
        send(worker_of(message.to), job.workspace + message.at_from, values(message));
  };
  const auto [first, last] = model.segments_of(part_of(model).stage);
  for (int k = 0; k < last - first; ++k) {
    const int own = is_backward ? last - 1 - k : first + k;
    const Segment& segment = model.segments()[static_cast<std::size_t>(own)];
    if (segment.worker != worker_.part) continue;
    gpu::PartJob<Real> of_segment = job;
    of_segment.parameters += segment.row_begin;
    if (is_backward) of_segment.gradient += segment.row_begin;
    task.program = &segment.program;
    const auto run = [&](gpu::PartPass which) {
      device_.train_part(task, which, std::span<const gpu::PartJob<Real>>(&of_segment, 1));
    };
    receive_all(own, false);
    if (is_backward && segment.goes_on) {
      run(gpu::PartPass::backward_but_input);
      receive_all(own, true);
      run(gpu::PartPass::backward_of_input);
      send_all(own);
    } else if (is_backward && segment.sends_before_parameters) {
      run(gpu::PartPass::backward_but_parameters);
      send_all(own);
      run(gpu::PartPass::backward_of_parameters);
    } else {
      run(is_backward ? gpu::PartPass::backward : gpu::PartPass::forward);
      send_all(own);
    }
  }
}

template <class Real>
void ReplicaWorker<Real>::send(int part, const Real* values, std::size_t count) {
  if (device_.host_accessible()) return worker_.links->send(part, std::span(values, count));
  staged_.resize(count);
  device_.download(staged_.data(), values, count * sizeof(Real));
  worker_.links->send(part, staged_);
}

template <class Real>
void ReplicaWorker<Real>::receive(int part, Real* values, std::size_t count) {
  if (device_.host_accessible()) return worker_.links->receive(part, std::span(values, count));
  staged_.resize(count);
  worker_.links->receive(part, staged_);
  device_.upload(values, staged_.data(), count * sizeof(Real));
}

template <class Real>
void ReplicaWorker<Real>::agree(double call) {
  if (worker_.part > 0) {
    double before = 0;
    receive_numbers(*worker_.links, worker_.part - 1, std::span(&before, 1));
    if (before != call)
      throw WorkerLost("the workers of this replica are not in step: that of part " +
                       std::to_string(worker_.part - 1) + " " + text_of_call(before) +
                       ", and that of part " + std::to_string(worker_.part) + " " +
                       text_of_call(call) +
                       "; either they log other rounds (log.every, log.last), or the networks of "
                       "their parts left out "
                       "different rounds");
  }
  if (worker_.part + 1 < workers())
    send_numbers(*worker_.links, worker_.part + 1, std::span<const double>(&call, 1));
}

template <class Real>
void ReplicaWorker<Real>::share(std::span<double> numbers) {
  if (!has_loss()) return receive_numbers(*worker_.links, training_.last_worker(), numbers);
  for (int worker = 0; worker < workers(); ++worker)
    if (worker != worker_.part)
      send_numbers(*worker_.links, worker, std::span<const double>(numbers));
}

template class ReplicaWorker<float>;
template class ReplicaWorker<double>;

}  // namespace gossamer::train
