// Compute batches requests. Coroutines request training, mixing and row operations and are
// suspended; when no coroutine is ready, the pending requests of equal operation and shape form one
// batch. Mixing runs at once, on the scheduler's thread: it is short, and in a network it overlaps
// with training, which goes to an Executor.
//
// In virtual time a training request takes the peer's step time for each step. Its result cannot be
// seen before it is due, so all requests that are pending when the first one is due form one batch.
#pragma once

#include <coroutine>
#include <cstdint>
#include <functional>
#include <span>
#include <tuple>
#include <vector>

#include "gossip/codec.hpp"
#include "gossip/scheduler.hpp"
#include "gossip/step_times.hpp"
#include "gossip/trainer.hpp"
#include "gpu/device.hpp"

namespace gossamer::gossip {

/// Runs training batches.
class Executor {
 public:
  virtual ~Executor() = default;
  /// Runs `work`, one at a time and in order, and then `done` on the scheduler's thread: at once,
  /// or from a thread of its own.
  virtual void execute(std::function<void()> work, std::function<void()> done) = 0;
  /// Whether `work` runs beside the scheduler's thread.
  virtual bool is_concurrent() const { return false; }
};

/// Runs it at once: virtual time.
class InlineExecutor final : public Executor {
 public:
  void execute(std::function<void()> work, std::function<void()> done) override {
    work();
    done();
  }
};

/// Receives the completion of a piece of mixing.
class MixListener {
 public:
  virtual ~MixListener() = default;
  /// `seconds`: this piece's part of the batch's time.
  virtual void mixed(gpu::MixRequest& piece, double seconds) = 0;
};

/// Thread: the scheduler's.
class Compute final : public IdleWork {
 public:
  /// `trainer` may be null where nothing trains. All outlive this object.
  Compute(Scheduler& scheduler, Executor& executor, gpu::Device& device, Trainer* trainer,
          const StepTimes& step_times);
  ~Compute() override;

  /// co_await compute.train(operation, request): until the request is served. The request stays
  /// where it is meanwhile.
  auto train(TrainOperation operation, TrainRequest& request) {
    return Awaiter(*this, operation, request);
  }

  /// co_await compute.handed_over(): where training runs beside the scheduler's thread, until that
  /// has the training that is queued, or is busy with an earlier batch. What the caller has this
  /// thread do next then does not keep it waiting. Elsewhere it returns at once.
  auto handed_over() { return Handover{*this}; }

  /// Queues a piece of mixing. Piece, sources and listener stay where they are until the listener
  /// is called.
  void mix(gpu::MixRequest& piece, MixListener& listener) { mixes_.push_back({&piece, &listener}); }

  /// Queues a range check of a row: the device runs it before all other queued requests. A caller
  /// that submits work to the device itself, to run after the check, calls run_checks() first.
  void check_range(const gpu::RangeCheckRequest& request) { range_checks_.push_back(request); }
  void run_checks();

  /// co_await compute.operate(request), for a request of RowQueues: until the operation is ordered
  /// before all later work of the device; distances are complete then. What the request refers to
  /// stays where it is meanwhile.
  template <class Request>
  auto operate(const Request& request) {
    return RowAwaiter<Request>(std::get<RowQueue<Request>>(row_queues_), request);
  }
  /// co_await compute.axpy({…}), compute.add_difference({…}), compute.scale({…}), …: likewise.
  auto axpy(const gpu::AxpyRequest<float>& request) { return operate(request); }
  auto add_difference(const gpu::DifferenceRequest<float>& request) { return operate(request); }
  auto scale(const gpu::ScaleRequest<float>& request) { return operate(request); }
  auto divide(const gpu::DivideRequest<float>& request) { return operate(request); }
  auto copy(const gpu::CopyRequest<float>& request) { return operate(request); }
  auto fill(const gpu::FillRequest<float>& request) { return operate(request); }

  /// co_await compute.encode(codec, request), and decode: likewise. The codec outlives it.
  auto encode(const Codec& codec, const EncodeRequest& request) {
    return RowAwaiter<CodecRequest<EncodeRequest>>(encodes_, {&codec, request, request.length});
  }
  auto decode(const Codec& codec, const DecodeRequest& request) {
    return RowAwaiter<CodecRequest<DecodeRequest>>(decodes_, {&codec, request, request.length});
  }

  /// For rates and sizes of shards; null where nothing trains, and train() is not called.
  const Trainer* trainer() const { return trainer_; }
  /// The device that the rows lie on.
  gpu::Device& device() { return device_; }

  bool run_pending(Time next_event) override;

 private:
  struct Training {
    TrainOperation operation;
    TrainRequest* request;
    std::coroutine_handle<> waiter;
    Time due;
  };
  struct Mixing {
    gpu::MixRequest* piece;
    MixListener* listener;
  };
  struct Awaiter {
    Awaiter(Compute& compute_in, TrainOperation operation_in, TrainRequest& request_in)
        : compute(compute_in), operation(operation_in), request(request_in) {}
    Compute& compute;
    TrainOperation operation;
    TrainRequest& request;
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> waiter) {
      compute.enqueue(operation, request, waiter);
    }
    void await_resume() const {}
  };

  struct Handover {
    Compute& compute;
    bool await_ready() const { return !compute.executor_.is_concurrent(); }
    void await_suspend(std::coroutine_handle<> waiter) { compute.handovers_.push_back(waiter); }
    void await_resume() const {}
  };

  /// Row operations of one kind that wait for their batch.
  template <class Request>
  struct RowQueue {
    std::vector<Request> requests;
    std::vector<std::coroutine_handle<>> waiters;
  };
  template <class Request>
  struct RowAwaiter {
    RowAwaiter(RowQueue<Request>& queue_in, const Request& request_in)
        : queue(queue_in), request(request_in) {}
    RowQueue<Request>& queue;
    Request request;
    bool await_ready() const { return request.length == 0; }
    void await_suspend(std::coroutine_handle<> waiter) {
      queue.requests.push_back(request);
      queue.waiters.push_back(waiter);
    }
    void await_resume() const {}
  };

  /// The queues, in the order in which they are served.
  using RowQueues =
      std::tuple<RowQueue<gpu::AxpyRequest<float>>, RowQueue<gpu::DifferenceRequest<float>>,
                 RowQueue<gpu::ScaleRequest<float>>, RowQueue<gpu::DivideRequest<float>>,
                 RowQueue<gpu::CopyRequest<float>>, RowQueue<gpu::FillRequest<float>>,
                 RowQueue<gpu::ProjectRequest<float>>, RowQueue<gpu::AddProductRequest<float>>,
                 RowQueue<gpu::DistancesRequest<float>>,
                 RowQueue<gpu::OrderStatisticsRequest<float>>>;

  template <class Request>
  struct CodecRequest {
    const Codec* codec;
    Request request;
    std::size_t length;
  };

  template <class Request, class Serve>
  void run_coded(std::span<const CodecRequest<Request>> requests, Serve serve);
  void enqueue(TrainOperation operation, TrainRequest& request, std::coroutine_handle<> waiter);
  void run_mixes();
  bool run_row_operations();
  template <class Request, class Serve>
  bool run_rows(RowQueue<Request>& queue, Serve serve);
  bool run_training(Time next_event);

  Scheduler& scheduler_;
  Executor& executor_;
  gpu::Device& device_;
  Trainer* trainer_;
  StepTimes step_times_;
  std::vector<Training> training_;
  std::vector<std::coroutine_handle<>> handovers_;
  std::vector<gpu::RangeCheckRequest> range_checks_;
  std::vector<Mixing> mixes_;
  std::vector<gpu::MixRequest> mix_batch_;
  RowQueues row_queues_;
  RowQueue<CodecRequest<EncodeRequest>> encodes_;
  RowQueue<CodecRequest<DecodeRequest>> decodes_;
  int batches_in_flight_ = 0;
};

}  // namespace gossamer::gossip
