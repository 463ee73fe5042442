#include "gpu/cpu_device.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <vector>

#include "base/rows.hpp"
#include "gpu/cpu/conversion.hpp"
#include "gpu/cpu/executor.hpp"
#include "gpu/cpu/judging.hpp"
#include "gpu/cpu/mix.hpp"
#include "gpu/cpu/random.hpp"
#include "gpu/cpu/selection.hpp"
#include "gpu/cpu/thread_pool.hpp"

namespace gossamer::gpu {
namespace {

/// Workspaces of the threads at work, kept between calls. Any thread.
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

}  // namespace

struct CpuDevice::State {
  explicit State(int threads) : pool(threads) {}

  template <class Real>
  void run(const Task& task, std::span<const Job<Real>> jobs, Work work) {
    pool.parallel_for(jobs.size(), [&](std::size_t i) {
      auto memory = workspaces.take(task.program->workspace * sizeof(Real));
      run_job<Real>(task, jobs[i], work, reinterpret_cast<Real*>(memory.data()));
      workspaces.give(std::move(memory));
    });
  }

  /// function(request) for each, on the pool where they are long.
  template <class Request, class Function>
  void each(std::span<Request> requests, Function function) {
    constexpr std::size_t worth_a_thread = 1 << 14;
    std::size_t values = 0;
    for (const auto& request : requests) values += request.length;
    const auto work = [&](std::size_t i) { function(requests[i]); };
    if (values >= worth_a_thread) return pool.parallel_for(requests.size(), work);
    for (std::size_t i = 0; i < requests.size(); ++i) work(i);
  }

  ThreadPool pool;
  Workspaces workspaces;
};

CpuDevice::CpuDevice(int threads) : state_(std::make_unique<State>(threads)) {}
CpuDevice::~CpuDevice() = default;

int CpuDevice::threads() const { return state_->pool.threads(); }

void* CpuDevice::allocate(std::size_t bytes, int) {
  const std::size_t whole = (bytes + kRowAlignment - 1) / kRowAlignment * kRowAlignment;
  void* memory = std::aligned_alloc(kRowAlignment, whole == 0 ? kRowAlignment : whole);
  if (memory == nullptr) throw std::bad_alloc();
  std::memset(memory, 0, whole);
  return memory;
}
void CpuDevice::release(void* memory) { std::free(memory); }
void CpuDevice::upload(void* device, const void* host, std::size_t bytes) {
  if (bytes > 0) std::memcpy(device, host, bytes);
}
void CpuDevice::download(void* host, const void* device, std::size_t bytes) {
  if (bytes > 0) std::memcpy(host, device, bytes);
}

void CpuDevice::begin_download(void* host, const void* device, std::size_t bytes,
                               std::function<void()> done) {
  download(host, device, bytes);
  done();
}
void CpuDevice::begin_upload(void* device, const void* host, std::size_t bytes,
                             std::function<void()> done) {
  upload(device, host, bytes);
  done();
}

MemoryInfo CpuDevice::memory_info(int) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return {page * static_cast<std::size_t>(::sysconf(_SC_AVPHYS_PAGES)),
          page * static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES))};
}

std::string CpuDevice::description() const {
  return "cpu, " + std::to_string(threads()) + (threads() == 1 ? " thread" : " threads");
}

void CpuDevice::to_bf16(std::span<const Bf16Request> requests) {
  state_->each(requests, gpu::to_bf16);
}
void CpuDevice::from_bf16(std::span<const Bf16Request> requests) {
  state_->each(requests, gpu::from_bf16);
}
void CpuDevice::to_int8(std::span<const Int8Request> requests) {
  state_->each(requests, gpu::to_int8);
}
void CpuDevice::from_int8(std::span<const Int8Request> requests) {
  state_->each(requests, gpu::from_int8);
}
void CpuDevice::to_signs(std::span<const SignRequest> requests) {
  state_->each(requests, gpu::to_signs);
}
void CpuDevice::from_signs(std::span<const SignRequest> requests) {
  state_->each(requests, gpu::from_signs);
}
void CpuDevice::largest(std::span<const LargestRequest> requests) {
  state_->each(requests, gpu::largest);
}
void CpuDevice::add_placed(std::span<const PlacedRequest> requests) {
  state_->each(requests, gpu::add_placed);
}
void CpuDevice::sample(std::span<const SampledRequest> requests) {
  state_->each(requests, gpu::sample);
}
void CpuDevice::add_sampled(std::span<const SampledRequest> requests) {
  state_->each(requests, gpu::add_sampled);
}
void CpuDevice::check_range(std::span<const RangeCheckRequest> requests) {
  state_->each(requests, gpu::check_range);
}
void CpuDevice::integers(std::span<const RandomRequest<std::uint32_t>> requests) {
  state_->each(requests, gpu::integers);
}
void CpuDevice::uniforms(std::span<const RandomRequest<float>> requests) {
  state_->each(requests, gpu::uniforms);
}

// Both number types of every operation.
#define GOSSAMER_BOTH(Real)                                                                        \
  void CpuDevice::mix(std::span<const BasicMixRequest<Real>> requests) {                           \
    mix_all<Real>(requests, state_->pool);                                                         \
  }                                                                                                \
  void CpuDevice::axpy(std::span<const AxpyRequest<Real>> requests) {                              \
    state_->each(requests,                                                                         \
                 [](const auto& r) { kernels<Real>().axpy(r.factor, r.x, r.y, r.length); });       \
  }                                                                                                \
  void CpuDevice::add_difference(std::span<const DifferenceRequest<Real>> requests) {              \
    state_->each(requests, [](const auto& r) {                                                     \
      kernels<Real>().add_difference(r.factor, r.out, r.a, r.b, r.length);                         \
    });                                                                                            \
  }                                                                                                \
  void CpuDevice::scale(std::span<const ScaleRequest<Real>> requests) {                            \
    state_->each(requests, [](const auto& r) { kernels<Real>().scale(r.factor, r.y, r.length); }); \
  }                                                                                                \
  void CpuDevice::divide(std::span<const DivideRequest<Real>> requests) {                          \
    state_->each(requests, [](const auto& r) {                                                     \
      if (r.length > 0) kernels<Real>().divide(r.x, *r.divisor, r.out, r.length);                  \
    });                                                                                            \
  }                                                                                                \
  void CpuDevice::copy(std::span<const CopyRequest<Real>> requests) {                              \
    state_->each(requests, [](const auto& r) { std::copy_n(r.from, r.length, r.to); });            \
  }                                                                                                \
  void CpuDevice::fill(std::span<const FillRequest<Real>> requests) {                              \
    state_->each(requests, [](const auto& r) { std::fill_n(r.y, r.length, r.value); });            \
  }                                                                                                \
  void CpuDevice::sketch(std::span<const SketchRequest<Real>> requests) {                          \
    state_->each(requests, gpu::sketch<Real>);                                                     \
  }                                                                                                \
  void CpuDevice::dot(std::span<ReduceRequest<Real>> requests) {                                   \
    state_->each(requests, [](auto& r) { r.result = kernels<Real>().dot(r.a, r.b, r.length); });   \
  }                                                                                                \
  void CpuDevice::squared_distance(std::span<ReduceRequest<Real>> requests) {                      \
    state_->each(requests, [](auto& r) {                                                           \
      r.result = kernels<Real>().squared_distance(r.a, r.b, r.length);                             \
    });                                                                                            \
  }                                                                                                \
  void CpuDevice::step(const Task& task, std::span<const Job<Real>> jobs) {                        \
    state_->run(task, jobs, Work::step);                                                           \
  }                                                                                                \
  void CpuDevice::gradient(const Task& task, std::span<const Job<Real>> jobs) {                    \
    state_->run(task, jobs, Work::gradient);                                                       \
  }                                                                                                \
  void CpuDevice::evaluate(const Task& task, std::span<const Job<Real>> jobs) {                    \
    state_->run(task, jobs, Work::evaluate);                                                       \
  }                                                                                                \
  void CpuDevice::update(const UpdateRule& rule, std::span<const UpdateJob<Real>> jobs) {          \
    state_->each(jobs, [&](const auto& job) {                                                      \
      kernels<Real>().update(update_constants<Real>(rule, job.rate, job.step), job.parameters,     \
                             job.state, job.gradient, job.length);                                 \
    });                                                                                            \
  }

GOSSAMER_BOTH(float)
GOSSAMER_BOTH(double)

}  // namespace gossamer::gpu
