// Compute alone: in which order it hands queued requests to the trainer and to the device.
#include <string>
#include <vector>

#include "gossip/compute.hpp"
#include "tests/gossip/test_util.hpp"

using namespace gossamer;
using namespace gossamer::gossip;
using namespace gossamer::gossip::testing;

namespace {

/// Keeps what it is given, as a thread of its own would that has not begun.
struct LaterExecutor final : Executor {
  explicit LaterExecutor(bool concurrent_in) : concurrent(concurrent_in) {}
  void execute(std::function<void()> work, std::function<void()> done) override {
    begun.push_back([work = std::move(work), done = std::move(done)] {
      work();
      done();
    });
  }
  bool is_concurrent() const override { return concurrent; }
  bool concurrent;
  std::vector<std::function<void()>> begun;
};

struct CountingTrainer final : Trainer {
  void run(TrainOperation, std::span<TrainRequest* const> requests) override {
    served += requests.size();
  }
  double rate(int, std::uint64_t) const override { return 1; }
  std::size_t shard_size(int) const override { return 1; }
  std::uint64_t batches_per_epoch(int) const override { return 1; }
  std::size_t served = 0;
};

/// How many batches of training have been handed over when a piece has been mixed.
struct Listener final : MixListener {
  explicit Listener(const LaterExecutor& executor_in) : executor(executor_in) {}
  void mixed(gpu::MixRequest&, double) override { begun = executor.begun.size(); }
  const LaterExecutor& executor;
  std::size_t begun = 99;
};

task<void> train(Compute& compute, bool& trained) {
  TrainRequest request;
  co_await compute.train(TrainOperation::local_steps, request);
  trained = true;
}

task<void> mix(Compute& compute, gpu::MixRequest& piece, Listener& listener) {
  co_await compute.handed_over();
  compute.mix(piece, listener);
}

/// Two peers train, and one of them mixes meanwhile. Returns the batches of training that had been
/// handed over when the mix was done.
std::size_t batches_before_mix(bool concurrent) {
  VirtualScheduler scheduler;
  LaterExecutor executor(concurrent);
  gpu::CpuDevice device(1);
  CountingTrainer trainer;
  Compute compute(scheduler, executor, device, &trainer, StepTimes{});
  bool trained = false, other_trained = false;
  task<void> training = train(compute, trained), other = train(compute, other_trained);
  const std::vector<float> x{1, 2};
  std::vector<float> out(2);
  gpu::MixRequest piece{x.data(), out.data(), {}, x.size()};
  Listener listener(executor);
  task<void> mixing = mix(compute, piece, listener);
  training.start(scheduler);
  mixing.start(scheduler);
  other.start(scheduler);
  scheduler.run();
  CHECK(out == x);
  REQUIRE(executor.begun.size() == 1);
  executor.begun.front()();
  scheduler.run();
  CHECK(trained);
  CHECK(other_trained);
  CHECK(trainer.served == 2);
  return listener.begun;
}

}  // namespace

TEST_CASE("a peer does not wait for training behind a batch in flight") {
  VirtualScheduler scheduler;
  LaterExecutor executor(true);
  gpu::CpuDevice device(1);
  CountingTrainer trainer;
  Compute compute(scheduler, executor, device, &trainer, StepTimes{});
  const std::vector<float> x{1};
  std::vector<float> out(1);
  gpu::MixRequest piece{x.data(), out.data(), {}, 1};
  Listener listener(executor);
  bool first_trained = false, second_trained = false;
  task<void> first = train(compute, first_trained);
  first.start(scheduler);
  scheduler.run();
  REQUIRE(executor.begun.size() == 1);
  task<void> second = train(compute, second_trained), mixing = mix(compute, piece, listener);
  second.start(scheduler);
  mixing.start(scheduler);
  scheduler.run();
  CHECK(listener.begun == 1);  // it has mixed, and the second batch waits
  executor.begun.front()();
  scheduler.run();
  REQUIRE(executor.begun.size() == 2);
  executor.begun.back()();
  scheduler.run();
  CHECK(first_trained);
  CHECK(second_trained);
}

TEST_CASE("training beside a mix is handed to another thread before the mix, in one batch") {
  CHECK(batches_before_mix(true) == 1);
  CHECK(batches_before_mix(false) == 0);  // in one thread there is nothing to overlap
}
