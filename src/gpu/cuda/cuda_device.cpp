#include "gpu/cuda/cuda_device.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <new>
#include <stdexcept>
#include <type_traits>

#include "base/check.hpp"
#include "gpu/cuda/conversion.hpp"
#include "gpu/cuda/discovery.hpp"
#include "gpu/cuda/judging.hpp"
#include "gpu/cuda/reductions.hpp"
#include "gpu/cuda/rows.hpp"
#include "gpu/cuda/selection.hpp"
#include "gpu/cuda/touched.hpp"
#include "gpu/gpu_names.hpp"

namespace gossamer::gpu::cuda {
namespace {

constexpr double kGibibyte = 1024.0 * 1024.0 * 1024.0;

std::string gpu_text(const GpuInfo& gpu) {
  return fmt::format("{}, {:.1f} GiB", gpu.name, static_cast<double>(gpu.memory_total) / kGibibyte);
}

}  // namespace

CudaDevice::CudaDevice(const std::vector<GpuInfo>& gpus, BlasFunctions blas)
    : blas_(std::move(blas)) {
  for (const GpuInfo& gpu : gpus) gpus_.push_back(std::make_unique<Gpu>(gpu, blas_));
  for (const auto& guest : gpus_)
    for (const auto& host : gpus_)
      if (guest != host) guest->reach(*host);
}

template <class Call>
auto CudaDevice::on(std::size_t gpu, Call call) const {
  try {
    return call();
  } catch (const std::runtime_error& error) {
    if (gpus_.size() == 1) throw;
    throw std::runtime_error(fmt::format("cuda:{}: {}", gpus_[gpu]->info().index, error.what()));
  }
}

template <class Request>
CudaDevice::Shares CudaDevice::share(std::span<Request> requests) const {
  Shares shares{.of_gpu = std::vector<std::vector<std::size_t>>(gpus_.size()), .visits = {}};
  Addresses::Reader addresses(addresses_);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if constexpr (requires { requests[i].length; }) {
      if (requests[i].length == 0) {  // its addresses may be none
        shares.of_gpu[0].push_back(i);
        continue;
      }
    }
    bool first = true;
    std::size_t home = 0;
    touched(requests[i], [&](const void* memory) {
      if (memory == nullptr) return;
      const std::size_t gpu = addresses.gpu_of(memory);
      if (first) home = gpu;
      else if (gpu != home) shares.visits.emplace(gpu, home);
      first = false;
    });
    shares.of_gpu[home].push_back(i);
  }
  using Plain = std::remove_const_t<Request>;
  GOSSAMER_CHECK(!kStaysAtHome<Plain> || shares.visits.empty(),
                 "what a peer trains with is on one GPU");
  return shares;
}

void CudaDevice::order(const Pairs& pairs) {
  for (auto pair = pairs.begin(); pair != pairs.end();) {
    const std::size_t first = pair->first;
    const cudaEvent_t done = on(first, [&] { return gpus_[first]->mark(); });
    for (; pair != pairs.end() && pair->first == first; ++pair)
      on(pair->second, [&] { gpus_[pair->second]->wait_for(done); });
  }
}

template <class Request, class Serve>
void CudaDevice::serve(std::span<Request> requests, Serve serve) {
  if (gpus_.size() == 1) return serve(0, requests);
  const Shares shares = share(requests);
  order(shares.visits);
  std::vector<std::remove_const_t<Request>> mine;
  for (std::size_t gpu = 0; gpu < gpus_.size(); ++gpu) {
    const std::vector<std::size_t>& places = shares.of_gpu[gpu];
    if (places.empty()) continue;
    mine.clear();
    for (const std::size_t place : places) mine.push_back(requests[place]);
    on(gpu, [&] { serve(gpu, std::span<Request>(mine)); });
    if constexpr (!std::is_const_v<Request>)  // results
      for (std::size_t i = 0; i < places.size(); ++i) requests[places[i]] = mine[i];
  }
  Pairs back;
  for (const auto& [host, guest] : shares.visits) back.emplace(guest, host);
  order(back);
}

template <class Real>
void CudaDevice::train(const Task& task, std::span<const Job<Real>> jobs, Work work) {
  if (jobs.empty()) return;
  GOSSAMER_CHECK(task.tables.size() == gpus_.size(), "a task has a table of samples on each GPU");
  serve(jobs, [&](std::size_t gpu, std::span<const Job<Real>> some) {
    Task here = task;
    here.tables = {task.tables[gpu]};
    cuda::train(gpus_[gpu]->lane(), here, some, work, gpus_[gpu]->most_workspace());
  });
}

void* CudaDevice::allocate(std::size_t bytes, int gpu_index) {
  const auto gpu = static_cast<std::size_t>(gpu_index);
  GOSSAMER_CHECK(gpu < gpus_.size(), "the device has that GPU");
  void* memory = on(gpu, [&] { return gpus_[gpu]->allocate(bytes); });
  if (gpus_.size() > 1) addresses_.add(memory, std::max<std::size_t>(bytes, 1), gpu);
  return memory;
}

void CudaDevice::release(void* memory) {
  if (memory == nullptr) return;
  const std::size_t gpu = home_of(memory);
  if (gpus_.size() > 1) addresses_.remove(memory);
  on(gpu, [&] { gpus_[gpu]->release(memory); });
}

void CudaDevice::upload(void* device, const void* host, std::size_t bytes) {
  if (bytes == 0) return;
  const std::size_t gpu = home_of(device);
  on(gpu, [&] { gpus_[gpu]->upload(device, host, bytes); });
}

void CudaDevice::download(void* host, const void* device, std::size_t bytes) {
  if (bytes == 0) return;
  const std::size_t gpu = home_of(device);
  on(gpu, [&] { gpus_[gpu]->download(host, device, bytes); });
}

MemoryInfo CudaDevice::memory_info(int gpu_index) {
  const auto gpu = static_cast<std::size_t>(gpu_index);
  GOSSAMER_CHECK(gpu < gpus_.size(), "the device has that GPU");
  return on(gpu, [&] { return gpus_[gpu]->memory_info(); });
}

// Pinned memory is every GPU's.
void* CudaDevice::allocate_host(std::size_t bytes) { return gpus_[0]->allocate_host(bytes); }
void CudaDevice::release_host(void* memory) {
  if (memory != nullptr) gpus_[0]->release_host(memory);
}

void CudaDevice::finish() {
  for (std::size_t gpu = 0; gpu < gpus_.size(); ++gpu)
    on(gpu, [&] { gpus_[gpu]->lane().finish(); });
}

void CudaDevice::begin_download(void* host, const void* device, std::size_t bytes,
                                std::function<void()> done) {
  const std::size_t gpu = home_of(device);
  on(gpu, [&] { gpus_[gpu]->begin_download(host, device, bytes, std::move(done)); });
}
void CudaDevice::begin_upload(void* device, const void* host, std::size_t bytes,
                              std::function<void()> done) {
  const std::size_t gpu = home_of(device);
  on(gpu, [&] { gpus_[gpu]->begin_upload(device, host, bytes, std::move(done)); });
}

std::string CudaDevice::description() const {
  std::vector<int> numbers;
  std::vector<std::string> texts;
  for (const auto& gpu : gpus_) {
    numbers.push_back(gpu->info().index);
    texts.push_back(gpu_text(gpu->info()));
  }
  const std::string names = gpu_names(numbers);
  if (texts.size() == 1) return fmt::format("{}, {}", names, texts[0]);
  const bool alike =
      std::ranges::all_of(texts, [&](const std::string& text) { return text == texts[0]; });
  return alike ? fmt::format("{}, {} × {}", names, texts.size(), texts[0])
               : fmt::format("{}, {}", names, fmt::join(texts, " + "));
}

#define GOSSAMER_SERVE(operation, Request)                             \
  void CudaDevice::operation(std::span<Request> requests) {            \
    serve(requests, [this](std::size_t gpu, std::span<Request> mine) { \
      cuda::operation(gpus_[gpu]->lane(), mine);                       \
    });                                                                \
  }
GOSSAMER_SERVE(to_bf16, const Bf16Request)
GOSSAMER_SERVE(from_bf16, const Bf16Request)
GOSSAMER_SERVE(to_int8, const Int8Request)
GOSSAMER_SERVE(from_int8, const Int8Request)
GOSSAMER_SERVE(to_signs, const SignRequest)
GOSSAMER_SERVE(from_signs, const SignRequest)
GOSSAMER_SERVE(largest, const LargestRequest)
GOSSAMER_SERVE(add_placed, const PlacedRequest)
GOSSAMER_SERVE(sample, const SampledRequest)
GOSSAMER_SERVE(add_sampled, const SampledRequest)
GOSSAMER_SERVE(check_range, const RangeCheckRequest)
GOSSAMER_SERVE(integers, const RandomRequest<std::uint32_t>)
GOSSAMER_SERVE(uniforms, const RandomRequest<float>)

// Both number types of every operation.
#define GOSSAMER_BOTH(Real)                                                                \
  GOSSAMER_SERVE(mix, const BasicMixRequest<Real>)                                         \
  GOSSAMER_SERVE(axpy, const AxpyRequest<Real>)                                            \
  GOSSAMER_SERVE(add_difference, const DifferenceRequest<Real>)                            \
  GOSSAMER_SERVE(scale, const ScaleRequest<Real>)                                          \
  GOSSAMER_SERVE(divide, const DivideRequest<Real>)                                        \
  GOSSAMER_SERVE(copy, const CopyRequest<Real>)                                            \
  GOSSAMER_SERVE(fill, const FillRequest<Real>)                                            \
  GOSSAMER_SERVE(dot, ReduceRequest<Real>)                                                 \
  GOSSAMER_SERVE(squared_distance, ReduceRequest<Real>)                                    \
  GOSSAMER_SERVE(sketch, const SketchRequest<Real>)                                        \
  void CudaDevice::step(const Task& task, std::span<const Job<Real>> jobs) {               \
    train(task, jobs, Work::step);                                                         \
  }                                                                                        \
  void CudaDevice::gradient(const Task& task, std::span<const Job<Real>> jobs) {           \
    train(task, jobs, Work::gradient);                                                     \
  }                                                                                        \
  void CudaDevice::evaluate(const Task& task, std::span<const Job<Real>> jobs) {           \
    train(task, jobs, Work::evaluate);                                                     \
  }                                                                                        \
  void CudaDevice::update(const UpdateRule& rule, std::span<const UpdateJob<Real>> jobs) { \
    serve(jobs, [&](std::size_t gpu, std::span<const UpdateJob<Real>> mine) {              \
      cuda::update(gpus_[gpu]->lane(), rule, mine);                                        \
    });                                                                                    \
  }

GOSSAMER_BOTH(float)
GOSSAMER_BOTH(double)

Result<std::unique_ptr<Device>> make_cuda_device(const Options& options) {
  const Discovery discovery = discover_gpus();
  std::vector<GpuInfo> gpus;
  for (const int gpu : options.gpus) {
    GOSSAMER_TRY_STATUS(check_gpu(discovery, gpu));
    gpus.push_back(discovery.gpus[static_cast<std::size_t>(gpu)]);
  }
  GOSSAMER_TRY_STATUS(check_reach(gpus));
  GOSSAMER_TRY(BlasFunctions blas, load_blas());
  try {
    return std::unique_ptr<Device>(std::make_unique<CudaDevice>(gpus, std::move(blas)));
  } catch (const std::exception& error) {
    return Error{ErrorKind::invalid,
                 fmt::format("{} cannot be used: {}", gpu_names(options.gpus), error.what())};
  }
}

}  // namespace gossamer::gpu::cuda
