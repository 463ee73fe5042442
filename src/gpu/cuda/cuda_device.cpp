#include "gpu/cuda/cuda_device.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <new>
#include <stdexcept>

#include "base/check.hpp"
#include "gpu/cuda/discovery.hpp"
#include "gpu/cuda/kernels/codecs.hpp"
#include "gpu/cuda/kernels/low_rank.hpp"
#include "gpu/cuda/kernels/muon.hpp"
#include "gpu/cuda/kernels/rows.hpp"
#include "gpu/cuda/training/parts.hpp"
#include "gpu/cuda/training/training.hpp"
#include "gpu/gpu_names.hpp"

namespace gossamer::gpu::cuda {
namespace {

constexpr double kGibibyte = 1024.0 * 1024.0 * 1024.0;

std::string gpu_text(const GpuInfo& gpu) {
  return fmt::format("{}, {:.1f} GiB", gpu.name, static_cast<double>(gpu.memory_total) / kGibibyte);
}

const char* precision_text(MatmulPrecision precision) {
  switch (precision) {
    case MatmulPrecision::float32: break;
    case MatmulPrecision::tf32: return ", matrix products in tf32";
    case MatmulPrecision::bf16: return ", matrix products in bf16";
  }
  return "";
}

/// A mark: by GPU index.
using Events = std::vector<Event>;

/// Visitor of one request's memory: which GPU serves it, and which others own memory that it
/// touches.
template <class OnOther>
class Footprint {
 public:
  Footprint(AddressMap::Reader& addresses, OnOther on_other)
      : addresses_(addresses), on_other_(on_other) {}

  Footprint& writes(const auto*... memory) { return (touch(memory), ..., *this); }
  Footprint& reads(const auto*... memory) { return (touch(memory), ..., *this); }
  /// The GPU that holds the first row of the request.
  std::size_t server() const { return server_ == kNone ? 0 : server_; }

 private:
  void touch(const void* memory) {
    if (memory == nullptr) return;
    const std::size_t gpu_index = addresses_.gpu_of(memory);
    if (server_ == kNone) server_ = gpu_index;
    else if (gpu_index != server_) on_other_(gpu_index, server_);
  }

  static constexpr auto kNone = static_cast<std::size_t>(-1);

  AddressMap::Reader& addresses_;
  OnOther on_other_;
  std::size_t server_ = kNone;
};

/// Whether all memory of such a request must be on one GPU.
template <class Request>
constexpr bool on_one_gpu() {
  if constexpr (requires { Request::kOneGpu; }) return Request::kOneGpu;
  else return false;
}

}  // namespace

template <class Real>
CudaDevice<Real>::CudaDevice(const std::vector<GpuInfo>& gpus, BlasFunctions blas)
    : blas_(std::move(blas)) {
  for (const GpuInfo& gpu : gpus) gpus_.push_back(std::make_unique<Gpu>(gpu, blas_));
  for (const auto& gpu : gpus_)
    for (const auto& other : gpus_)
      if (gpu != other) gpu->enable_access_to(*other);
}

template <class Real>
template <class Call>
auto CudaDevice<Real>::on(std::size_t gpu_index, Call call) const {
  try {
    return call();
  } catch (const std::runtime_error& error) {
    if (gpus_.size() == 1) throw;
    throw std::runtime_error(
        fmt::format("cuda:{}: {}", gpus_[gpu_index]->info().index, error.what()));
  }
}

template <class Real>
template <class Request>
typename CudaDevice<Real>::Shares CudaDevice<Real>::share(std::span<const Request> requests) const {
  Shares shares{.requests = std::vector<std::vector<std::size_t>>(gpus_.size()), .owners = {}};
  AddressMap::Reader addresses(addresses_);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if constexpr (requires { requests[i].length; }) {
      if (requests[i].length == 0) {  // its addresses may be invalid
        shares.requests[0].push_back(i);
        continue;
      }
    }
    Footprint footprint(addresses, [&](std::size_t owner, std::size_t server) {
      shares.owners.emplace(owner, server);
    });
    requests[i].visit_memory(footprint);
    shares.requests[footprint.server()].push_back(i);
  }
  GOSSAMER_CHECK(!on_one_gpu<Request>() || shares.owners.empty(),
                 "all memory of a training job is on one GPU");
  return shares;
}

template <class Real>
template <class Request, class Serve>
void CudaDevice<Real>::serve_each(std::span<const Request> requests, Serve serve) {
  if (gpus_.size() == 1) return serve(0, requests);
  // For each dependency: the calling thread's later work on `second` waits for its earlier work on
  // `first`.
  const auto order = [this](const Dependencies& dependencies) {
    for (auto next = dependencies.begin(); next != dependencies.end();) {
      const std::size_t first = next->first;
      const cudaEvent_t done = on(first, [&] { return gpus_[first]->record_event(); });
      for (; next != dependencies.end() && next->first == first; ++next)
        on(next->second, [&] { gpus_[next->second]->wait_for(done); });
    }
  };
  const Shares shares = share(requests);
  order(shares.owners);
  std::vector<Request> mine;
  for (std::size_t gpu_index = 0; gpu_index < gpus_.size(); ++gpu_index) {
    if (shares.requests[gpu_index].empty()) continue;
    mine.clear();
    for (const std::size_t i : shares.requests[gpu_index]) mine.push_back(requests[i]);
    on(gpu_index, [&] { serve(gpu_index, std::span<const Request>(mine)); });
  }
  Dependencies back;
  for (const auto& [owner, server] : shares.owners) back.emplace(server, owner);
  order(back);
}

template <class Real>
void CudaDevice<Real>::execute(const BasicRequests<Real>& requests) {
  std::visit(
      [this](auto all) {
        serve_each(all, [this](std::size_t gpu_index, auto some) {
          enqueue(gpus_[gpu_index]->stream_context(), some);
        });
      },
      requests);
}

template <class Real>
void CudaDevice<Real>::train(const Task& task, Pass pass, std::span<const Job<Real>> jobs) {
  if (jobs.empty()) return;
  GOSSAMER_CHECK(task.tables.size() == gpus_.size(), "a task has a table of samples on each GPU");
  GOSSAMER_CHECK(pass != Pass::step || task.rule.kind != UpdateRule::Kind::muon,
                 "a step of Muon is a gradient and an update");
  serve_each(jobs, [&](std::size_t gpu_index, std::span<const Job<Real>> some) {
    Task here = task;
    here.tables = {task.tables[gpu_index]};
    Gpu& gpu = *gpus_[gpu_index];
    cuda::train(gpu.stream_context(), here, pass, some, gpu.most_workspace());
  });
}

template <class Real>
void CudaDevice<Real>::train_part(const Task& task, PartPass pass,
                                  std::span<const PartJob<Real>> jobs) {
  // The jobs of one GPU follow each other, and memory of a replica is on one GPU.
  while (!jobs.empty()) {
    const int gpu = gpu_of(jobs[0].workspace);
    const auto gpu_index = static_cast<std::size_t>(gpu);
    const auto end = std::ranges::find_if(
        jobs, [&](const PartJob<Real>& job) { return gpu_of(job.workspace) != gpu; });
    const auto some = jobs.first(static_cast<std::size_t>(end - jobs.begin()));
    Task here = task;
    here.tables = {task.tables[gpu_index]};
    on(gpu_index, [&] { cuda::train_part(gpus_[gpu_index]->stream_context(), here, pass, some); });
    jobs = jobs.subspan(some.size());
  }
}

template <class Real>
void CudaDevice<Real>::update(const UpdateRule& rule, std::span<const UpdateJob<Real>> jobs) {
  serve_each(jobs, [&](std::size_t gpu_index, std::span<const UpdateJob<Real>> some) {
    StreamContext& context = gpus_[gpu_index]->stream_context();
    if (rule.kind == UpdateRule::Kind::muon) cuda::muon(context, rule, some);
    else cuda::update(context, rule, some);
  });
}

template <class Real>
void* CudaDevice<Real>::allocate(std::size_t bytes, int gpu_index) {
  const auto index = static_cast<std::size_t>(gpu_index);
  GOSSAMER_CHECK(index < gpus_.size(), "the device has that GPU");
  void* memory = on(index, [&] { return gpus_[index]->allocate(bytes); });
  if (gpus_.size() > 1) addresses_.add(memory, std::max<std::size_t>(bytes, 1), index);
  return memory;
}

template <class Real>
void CudaDevice<Real>::release(void* memory) noexcept {
  if (memory == nullptr) return;
  const auto index = static_cast<std::size_t>(gpu_of(memory));
  if (gpus_.size() > 1) addresses_.remove(memory);
  gpus_[index]->release(memory);
}

template <class Real>
MemoryInfo CudaDevice<Real>::memory_info(int gpu_index) {
  const auto index = static_cast<std::size_t>(gpu_index);
  GOSSAMER_CHECK(index < gpus_.size(), "the device has that GPU");
  return on(index, [&] { return gpus_[index]->memory_info(); });
}

// All GPUs can use pinned memory.
template <class Real>
void* CudaDevice<Real>::allocate_host(std::size_t bytes) {
  return gpus_[0]->allocate_host(bytes);
}

template <class Real>
void CudaDevice<Real>::release_host(void* memory) noexcept {
  if (memory != nullptr) gpus_[0]->release_host(memory);
}

template <class Real>
void CudaDevice<Real>::upload(void* device, const void* host, std::size_t bytes) {
  if (bytes == 0) return;
  const auto index = static_cast<std::size_t>(gpu_of(device));
  on(index, [&] { gpus_[index]->upload(device, host, bytes); });
}

template <class Real>
void CudaDevice<Real>::download(void* host, const void* device, std::size_t bytes) {
  if (bytes == 0) return;
  const auto index = static_cast<std::size_t>(gpu_of(device));
  on(index, [&] { gpus_[index]->download(host, device, bytes); });
}

template <class Real>
void CudaDevice<Real>::begin_upload(void* device, const void* host, std::size_t bytes,
                                    CopyDone done) {
  const auto index = static_cast<std::size_t>(gpu_of(device));
  on(index, [&] { gpus_[index]->begin_upload(device, host, bytes, std::move(done)); });
}

template <class Real>
void CudaDevice<Real>::begin_download(void* host, const void* device, std::size_t bytes,
                                      CopyDone done) {
  const auto index = static_cast<std::size_t>(gpu_of(device));
  on(index, [&] { gpus_[index]->begin_download(host, device, bytes, std::move(done)); });
}

template <class Real>
void CudaDevice<Real>::give_way() {
  for (std::size_t index = 0; index < gpus_.size(); ++index)
    on(index, [&] { gpus_[index]->give_way(); });
}

template <class Real>
std::shared_ptr<const void> CudaDevice<Real>::mark() {
  auto events = std::make_shared<Events>();
  for (std::size_t index = 0; index < gpus_.size(); ++index)
    on(index, [&] {
      const StreamContext& mine = gpus_[index]->stream_context();
      events->push_back(make_event());
      GOSSAMER_CUDA(cudaEventRecord, events->back().get(), mine.stream());
    });
  return events;
}

template <class Real>
void CudaDevice<Real>::wait(const std::shared_ptr<const void>& mark) {
  if (mark == nullptr) return;
  const Events& events = *static_cast<const Events*>(mark.get());
  for (std::size_t index = 0; index < gpus_.size(); ++index)
    on(index, [&] { gpus_[index]->wait_for(events[index].get()); });
}

template <class Real>
void CudaDevice<Real>::finish() {
  for (std::size_t index = 0; index < gpus_.size(); ++index)
    on(index, [&] { gpus_[index]->stream_context().finish(); });
}

template <class Real>
std::string CudaDevice<Real>::description() const {
  std::vector<int> numbers;
  std::vector<std::string> texts;
  for (const auto& gpu : gpus_) {
    numbers.push_back(gpu->info().index);
    texts.push_back(gpu_text(gpu->info()));
  }
  const bool alike =
      std::ranges::all_of(texts, [&](const std::string& text) { return text == texts[0]; });
  return fmt::format("{}, {}{}{}", gpu_names(numbers),
                     alike && texts.size() > 1 ? fmt::format("{} × ", texts.size()) : "",
                     alike ? texts[0] : fmt::format("{}", fmt::join(texts, " + ")),
                     precision_text(blas_.precision));
}

template <class Real>
Result<std::unique_ptr<BasicDevice<Real>>> make_cuda_device(const Options& options) {
  const Discovery discovery = discover_gpus();
  std::vector<GpuInfo> gpus;
  for (const int gpu : options.gpus) {
    GOSSAMER_TRY_STATUS(check_gpu(discovery, gpu));
    gpus.push_back(discovery.gpus[static_cast<std::size_t>(gpu)]);
  }
  GOSSAMER_TRY_STATUS(check_peer_access(gpus));
  GOSSAMER_TRY(BlasFunctions blas, load_blas());
  blas.precision = options.matmul_precision;
  try {
    return std::unique_ptr<BasicDevice<Real>>(
        std::make_unique<CudaDevice<Real>>(gpus, std::move(blas)));
  } catch (const std::exception& error) {
    return invalid_error(
        fmt::format("{} cannot be used: {}", gpu_names(options.gpus), error.what()));
  }
}

template Result<std::unique_ptr<BasicDevice<float>>> make_cuda_device(const Options&);
template Result<std::unique_ptr<BasicDevice<double>>> make_cuda_device(const Options&);

}  // namespace gossamer::gpu::cuda
