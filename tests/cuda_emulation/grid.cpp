// A thread that never waits needs no stack of its own: one fiber runs threads one after the other,
// until a thread reaches a barrier. That thread keeps the fiber, and the next fiber continues with
// the next thread. When all threads have ended or wait, the waiting threads continue, in the order
// that the test chose. As on GPUs since Volta, a barrier does not wait for threads that have ended.
#include "grid.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "base/check.hpp"
#include "fibers.hpp"
#include "memory.hpp"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace gossamer::emulation {
namespace {

class Block {
 public:
  void run(const std::function<void()>& kernel, const std::vector<unsigned>& threads,
           std::mt19937_64* shuffling);
  void wait();
  void begin_shared(const Guarded& variable);

 private:
  struct Worker {
    explicit Worker(Block* owner) : block(owner), fiber(&Worker::body, this) {}
    static void body(void* self);
    Block* block;
    Fiber fiber;
    uint3 thread = {};
  };

  void enter(Worker* worker);

  const std::function<void()>* kernel_ = nullptr;
  const std::vector<unsigned>* threads_ = nullptr;
  std::size_t next_ = 0;  // of threads_
  Worker* running_ = nullptr;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Worker*> idle_, waiting_;
  std::vector<Guarded> shared_;    ///< variables in shared memory that a thread has reached
  std::vector<Worker*> released_;  ///< they waited at the barrier that all have reached
  std::size_t next_released_ = 0;
};

void Block::Worker::body(void* self) {
  Worker& worker = *static_cast<Worker*>(self);
  Block& block = *worker.block;
  for (;;) {
    while (block.next_ < block.threads_->size()) {
      const unsigned number = (*block.threads_)[block.next_++];
      worker.thread = {number % blockDim.x, number / blockDim.x % blockDim.y,
                       number / blockDim.x / blockDim.y};
      threadIdx = worker.thread;
      (*block.kernel_)();
    }
    block.idle_.push_back(&worker);
    worker.fiber.leave();
  }
}

void Block::enter(Worker* worker) {
  running_ = worker;
  worker->fiber.enter();
  running_ = nullptr;
}

void Block::wait() {
  Worker* worker = running_;
  GOSSAMER_CHECK(worker != nullptr, "__syncthreads is called by the threads of a kernel");
  waiting_.push_back(worker);
  if (next_released_ < released_.size()) {
    running_ = released_[next_released_++];
    worker->fiber.leave_for(running_->fiber);
  } else {
    worker->fiber.leave();
  }
  threadIdx = worker->thread;
}

void Block::begin_shared(const Guarded& variable) {
  for (const Guarded& known : shared_)
    if (known.begin == variable.begin) return;
  shared_.push_back(variable);
  variable.fill();
}

void Block::run(const std::function<void()>& kernel, const std::vector<unsigned>& threads,
                std::mt19937_64* shuffling) {
  kernel_ = &kernel;
  threads_ = &threads;
  next_ = 0;
  shared_.clear();
  while (next_ < threads.size()) {
    if (idle_.empty()) {
      workers_.push_back(std::make_unique<Worker>(this));
      idle_.push_back(workers_.back().get());
    }
    Worker* worker = idle_.back();
    idle_.pop_back();
    enter(worker);
  }
  while (!waiting_.empty()) {
    released_.swap(waiting_);
    waiting_.clear();
    if (shuffling != nullptr) std::shuffle(released_.begin(), released_.end(), *shuffling);
    next_released_ = 0;
    while (next_released_ < released_.size()) enter(released_[next_released_++]);
  }
  for (const Guarded& variable : shared_) variable.check("a variable in shared memory");
}

Block& the_block() {
  static Block block;
  return block;
}

/// 0 … count − 1 in the order of the settings.
std::vector<unsigned> places(unsigned count, Order order, std::mt19937_64& random) {
  std::vector<unsigned> all(count);
  std::iota(all.begin(), all.end(), 0U);
  if (order == Order::descending) std::reverse(all.begin(), all.end());
  if (order == Order::shuffled) std::shuffle(all.begin(), all.end(), random);
  return all;
}

}  // namespace

void begin_shared(void* guarded, std::size_t total, std::size_t bytes) {
  the_block().begin_shared({static_cast<char*>(guarded), kSharedGuard, bytes, total});
}

void run_grid(dim3 grid, dim3 block, const std::function<void()>& kernel, Order order,
              std::uint64_t seed) {
  std::mt19937_64 random(seed);
  gridDim = grid;
  blockDim = block;
  std::vector<unsigned> threads = places(block.x * block.y * block.z, order, random);
  for (const unsigned place : places(grid.x * grid.y * grid.z, order, random)) {
    blockIdx = {place % grid.x, place / grid.x % grid.y, place / grid.x / grid.y};
    if (order == Order::shuffled) std::shuffle(threads.begin(), threads.end(), random);
    the_block().run(kernel, threads, order == Order::shuffled ? &random : nullptr);
  }
}

}  // namespace gossamer::emulation

void __syncthreads() { gossamer::emulation::the_block().wait(); }
