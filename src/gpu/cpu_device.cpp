#include "gpu/cpu_device.hpp"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <vector>

#include "base/check.hpp"
#include "base/rows.hpp"
#include "base/shared_memory.hpp"
#include "gpu/cpu/codecs.hpp"
#include "gpu/cpu/executor.hpp"
#include "gpu/cpu/low_rank.hpp"
#include "gpu/cpu/mix.hpp"
#include "gpu/cpu/muon.hpp"
#include "gpu/cpu/rows.hpp"
#include "gpu/cpu/thread_pool.hpp"

namespace gossamer::gpu {
namespace {

// Smaller blocks are not worth a page of their own.
constexpr std::size_t kSharedBytes = std::size_t{64} << 10;

/// Workspaces of the working threads, kept between calls. Thread: any.
class Workspaces {
 public:
  using Memory = Rows<std::byte>;

  Memory take(std::size_t bytes) {
    Memory memory;
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        memory = std::move(free_.back());
        free_.pop_back();
      }
    }
    return memory.length() >= bytes ? std::move(memory) : Memory(1, bytes);
  }

  void give(Memory memory) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(memory));
  }

 private:
  std::mutex mutex_;
  std::vector<Memory> free_;
};

/// Calls function(request) for each request, on the pool if the rows are long enough to pay for it.
template <class Request, class Function>
void for_each(std::span<const Request> requests, ThreadPool& pool, Function function) {
  constexpr std::size_t worth_a_thread = 1 << 14;
  std::size_t values = 0;
  for (const Request& request : requests) values += request.length;
  const auto work = [&](std::size_t i) { function(requests[i]); };
  if (values >= worth_a_thread) return pool.parallel_for(requests.size(), work);
  for (std::size_t i = 0; i < requests.size(); ++i) work(i);
}

/// Divides each request among the threads, if the rows are long enough to pay for it.
template <class Request>
void run_divided(std::span<const Request> requests, ThreadPool& pool) {
  constexpr std::size_t worth_a_thread = 1 << 14;
  std::size_t values = 0;
  for (const Request& request : requests) values += request.length * request.rows.size();
  const std::size_t threads =
      values >= worth_a_thread ? static_cast<std::size_t>(pool.threads()) : 1;
  pool.parallel_for(requests.size() * threads, [&](std::size_t i) {
    const Request& request = requests[i / threads];
    const std::size_t all = parts(request), k = i % threads;
    run_parts(request, all * k / threads, all * (k + 1) / threads);
  });
}

template <class Real>
void run_all(std::span<const DistancesRequest<Real>> requests, ThreadPool& pool) {
  run_divided(requests, pool);
}

template <class Real>
void run_all(std::span<const OrderStatisticsRequest<Real>> requests, ThreadPool& pool) {
  run_divided(requests, pool);
}

template <class Request>
void run_all(std::span<const Request> requests, ThreadPool& pool) {
  for_each(requests, pool, [](const Request& request) { run(request); });
}

}  // namespace

template <class Real>
struct BasicCpuDevice<Real>::State {
  explicit State(int threads) : pool(threads) {}

  ThreadPool pool;
  Workspaces workspaces;
  std::unique_ptr<SharedMemory> shared;
};

template <class Real>
BasicCpuDevice<Real>::BasicCpuDevice(int threads) : state_(std::make_unique<State>(threads)) {}
template <class Real>
BasicCpuDevice<Real>::~BasicCpuDevice() = default;

template <class Real>
int BasicCpuDevice<Real>::threads() const {
  return state_->pool.threads();
}

template <class Real>
void* BasicCpuDevice<Real>::allocate(std::size_t bytes, int) {
  if (state_->shared && bytes >= kSharedBytes)
    if (void* memory = state_->shared->allocate(bytes)) return std::memset(memory, 0, bytes);
  const std::size_t whole = (bytes + kRowAlignment - 1) / kRowAlignment * kRowAlignment;
  void* memory = std::aligned_alloc(kRowAlignment, whole == 0 ? kRowAlignment : whole);
  if (memory == nullptr) throw std::bad_alloc();
  std::memset(memory, 0, whole);
  return memory;
}

template <class Real>
void BasicCpuDevice<Real>::release(void* memory) noexcept {
  if (!state_->shared || !state_->shared->release(memory)) std::free(memory);
}

template <class Real>
SharedMemory* BasicCpuDevice<Real>::share() {
  if (!state_->shared)
    if (auto shared = SharedMemory::reserve(); shared.ok())
      state_->shared = std::move(shared).value();
  return state_->shared.get();
}

template <class Real>
MemoryInfo BasicCpuDevice<Real>::memory_info(int) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return {page * static_cast<std::size_t>(::sysconf(_SC_AVPHYS_PAGES)),
          page * static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES))};
}

template <class Real>
void BasicCpuDevice<Real>::upload(void* device, const void* host, std::size_t bytes) {
  if (bytes > 0) std::memcpy(device, host, bytes);
}

template <class Real>
void BasicCpuDevice<Real>::download(void* host, const void* device, std::size_t bytes) {
  if (bytes > 0) std::memcpy(host, device, bytes);
}

template <class Real>
void BasicCpuDevice<Real>::begin_upload(void* device, const void* host, std::size_t bytes,
                                        CopyDone done) {
  upload(device, host, bytes);
  done({});
}

template <class Real>
void BasicCpuDevice<Real>::begin_download(void* host, const void* device, std::size_t bytes,
                                          CopyDone done) {
  download(host, device, bytes);
  done({});
}

template <class Real>
void BasicCpuDevice<Real>::execute(const BasicRequests<Real>& requests) {
  std::visit([this](auto some) { run_all(some, state_->pool); }, requests);
}

template <class Real>
void BasicCpuDevice<Real>::train(const Task& task, Pass pass, std::span<const Job<Real>> jobs) {
  GOSSAMER_CHECK(pass != Pass::step || task.rule.kind != UpdateRule::Kind::muon,
                 "a step of Muon is a gradient and an update");
  state_->pool.parallel_for(jobs.size(), [&](std::size_t i) {
    auto memory = state_->workspaces.take(task.program->workspace * sizeof(Real));
    run_job<Real>(task, jobs[i], pass, reinterpret_cast<Real*>(memory.data()));
    state_->workspaces.give(std::move(memory));
  });
}

template <class Real>
void BasicCpuDevice<Real>::train_part(const Task& task, PartPass pass,
                                      std::span<const PartJob<Real>> jobs) {
  state_->pool.parallel_for(jobs.size(), [&](std::size_t i) { run_part(task, jobs[i], pass); });
}

template <class Real>
void BasicCpuDevice<Real>::update(const UpdateRule& rule, std::span<const UpdateJob<Real>> jobs) {
  if (rule.kind == UpdateRule::Kind::muon)
    return state_->pool.parallel_for(jobs.size(), [&](std::size_t i) { muon_step(rule, jobs[i]); });
  for_each(jobs, state_->pool, [&](const UpdateJob<Real>& job) {
    kernels<Real>().update(update_constants<Real>(rule, job.rate, job.step), job.parameters,
                           job.state, job.gradient, job.length);
  });
}

template <class Real>
std::string BasicCpuDevice<Real>::description() const {
  return "cpu, " + std::to_string(threads()) + (threads() == 1 ? " thread" : " threads");
}

template class BasicCpuDevice<float>;
template class BasicCpuDevice<double>;

}  // namespace gossamer::gpu
