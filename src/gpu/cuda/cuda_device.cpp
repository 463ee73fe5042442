#include "gpu/cuda/cuda_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>

#include "gpu/cuda/conversion.hpp"
#include "gpu/cuda/reductions.hpp"
#include "gpu/cuda/rows.hpp"
#include "gpu/cuda/survey.hpp"
#include "gpu/cuda/training.hpp"

namespace gossamer::gpu::cuda {
namespace {

/// Workspace of a lane's training at most.
constexpr std::size_t kMostWorkspace = std::size_t{4} << 30;
/// Downloads up to this go through pinned memory that is there already.
constexpr std::size_t kSmallDownload = 64 << 10;

constexpr double kGibibyte = 1024.0 * 1024.0 * 1024.0;

}  // namespace

CudaDevice::CudaDevice(CardInfo card, BlasFunctions blas) : card_(std::move(card)), blas_(std::move(blas)) {
  make_current();
  downloads_ = std::make_unique<CopyStream>();
  uploads_ = std::make_unique<CopyStream>();
}

CudaDevice::~CudaDevice() { static_cast<void>(cudaSetDevice(card_.index)); }

Lane& CudaDevice::lane() {
  make_current();
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Lane>& mine = lanes_[std::this_thread::get_id()];
  if (mine == nullptr) mine = std::make_unique<Lane>(blas_, capturing_);
  return *mine;
}

std::size_t CudaDevice::most_workspace() const { return std::min(kMostWorkspace, card_.memory_total / 8); }

void* CudaDevice::allocate(std::size_t bytes) {
  Lane& mine = lane();
  void* memory = nullptr;
  GOSSAMER_CUDA(cudaMalloc, &memory, std::max<std::size_t>(bytes, 1));
  GOSSAMER_CUDA(cudaMemsetAsync, memory, 0, std::max<std::size_t>(bytes, 1), mine.stream());
  mine.finish();  // zero for every thread
  return memory;
}

void CudaDevice::release(void* memory) {
  if (memory == nullptr) return;
  make_current();
  const std::lock_guard lock(capturing_);
  GOSSAMER_CUDA(cudaDeviceSynchronize);
  GOSSAMER_CUDA(cudaFree, memory);
}

void CudaDevice::upload(void* device, const void* host, std::size_t bytes) {
  Ring& ring = lane().ring();
  for (std::size_t done = 0; done < bytes; done += Ring::kSegmentBytes) {
    const Ring::Room room = ring.reserve(std::min(bytes - done, Ring::kSegmentBytes));
    std::memcpy(room.host, static_cast<const std::byte*>(host) + done, room.bytes);
    ring.send(room, static_cast<std::byte*>(device) + done);
  }
}

void CudaDevice::download(void* host, const void* device, std::size_t bytes) {
  if (bytes == 0) return;
  Lane& mine = lane();
  if (bytes <= kSmallDownload) {
    std::memcpy(host, mine.fetch(device, bytes), bytes);
    return;
  }
  GOSSAMER_CUDA(cudaMemcpyAsync, host, device, bytes, cudaMemcpyDeviceToHost, mine.stream());
  mine.finish();
}

MemoryInfo CudaDevice::memory_info() {
  make_current();
  MemoryInfo info;
  GOSSAMER_CUDA(cudaMemGetInfo, &info.free, &info.total);
  return info;
}

void* CudaDevice::allocate_host(std::size_t bytes) {
  make_current();
  void* memory = nullptr;
  GOSSAMER_CUDA(cudaMallocHost, &memory, std::max<std::size_t>(bytes, 1));
  return memory;
}

void CudaDevice::release_host(void* memory) {
  if (memory == nullptr) return;
  make_current();
  GOSSAMER_CUDA(cudaFreeHost, memory);
}

void CudaDevice::finish() { lane().finish(); }

void CudaDevice::begin_download(void* host, const void* device, std::size_t bytes, std::function<void()> done) {
  downloads_->begin(lane(), host, device, bytes, cudaMemcpyDeviceToHost, std::move(done));
}
void CudaDevice::begin_upload(void* device, const void* host, std::size_t bytes, std::function<void()> done) {
  uploads_->begin(lane(), device, host, bytes, cudaMemcpyHostToDevice, std::move(done));
}

std::string CudaDevice::description() const {
  const double gibibytes = static_cast<double>(card_.memory_total) / kGibibyte;
  return fmt::format("cuda:{}, {}, {:.1f} GiB", card_.index, card_.name, gibibytes);
}

void CudaDevice::to_bf16(std::span<const Bf16Request> requests) { cuda::to_bf16(lane(), requests); }
void CudaDevice::from_bf16(std::span<const Bf16Request> requests) { cuda::from_bf16(lane(), requests); }
void CudaDevice::to_int8(std::span<const Int8Request> requests) { cuda::to_int8(lane(), requests); }
void CudaDevice::from_int8(std::span<const Int8Request> requests) { cuda::from_int8(lane(), requests); }
void CudaDevice::integers(std::span<const RandomRequest<std::uint32_t>> requests) { cuda::integers(lane(), requests); }
void CudaDevice::uniforms(std::span<const RandomRequest<float>> requests) { cuda::uniforms(lane(), requests); }

// Both number types of every operation.
#define GOSSAMER_BOTH(Real)                                                                                                 \
  void CudaDevice::mix(std::span<const BasicMixRequest<Real>> requests) { cuda::mix(lane(), requests); }                    \
  void CudaDevice::axpy(std::span<const AxpyRequest<Real>> requests) { cuda::axpy(lane(), requests); }                      \
  void CudaDevice::add_difference(std::span<const DifferenceRequest<Real>> requests) {                                      \
    cuda::add_difference(lane(), requests);                                                                                 \
  }                                                                                                                         \
  void CudaDevice::scale(std::span<const ScaleRequest<Real>> requests) { cuda::scale(lane(), requests); }                   \
  void CudaDevice::divide(std::span<const DivideRequest<Real>> requests) { cuda::divide(lane(), requests); }                \
  void CudaDevice::copy(std::span<const CopyRequest<Real>> requests) { cuda::copy(lane(), requests); }                      \
  void CudaDevice::fill(std::span<const FillRequest<Real>> requests) { cuda::fill(lane(), requests); }                      \
  void CudaDevice::dot(std::span<ReduceRequest<Real>> requests) { cuda::dot(lane(), requests); }                            \
  void CudaDevice::squared_distance(std::span<ReduceRequest<Real>> requests) { cuda::squared_distance(lane(), requests); }  \
  void CudaDevice::all_finite(std::span<FiniteRequest<Real>> requests) { cuda::all_finite(lane(), requests); }              \
  void CudaDevice::sketch(std::span<const SketchRequest<Real>> requests) { cuda::sketch(lane(), requests); }                \
  void CudaDevice::step(const Task& task, std::span<const Job<Real>> jobs) {                                                \
    train(lane(), task, jobs, Work::step, most_workspace());                                                                \
  }                                                                                                                         \
  void CudaDevice::gradient(const Task& task, std::span<const Job<Real>> jobs) {                                            \
    train(lane(), task, jobs, Work::gradient, most_workspace());                                                            \
  }                                                                                                                         \
  void CudaDevice::evaluate(const Task& task, std::span<const Job<Real>> jobs) {                                            \
    train(lane(), task, jobs, Work::evaluate, most_workspace());                                                            \
  }                                                                                                                         \
  void CudaDevice::update(const UpdateRule& rule, std::span<const UpdateJob<Real>> jobs) {                                  \
    cuda::update(lane(), rule, jobs);                                                                                       \
  }

GOSSAMER_BOTH(float)
GOSSAMER_BOTH(double)

Result<std::unique_ptr<Device>> make_cuda_device(const Options& options) {
  const Survey survey = survey_cards();
  GOSSAMER_TRY_STATUS(check_card(survey, options.card));
  GOSSAMER_TRY(BlasFunctions blas, load_blas());
  try {
    return std::unique_ptr<Device>(
        std::make_unique<CudaDevice>(survey.cards[static_cast<std::size_t>(options.card)], std::move(blas)));
  } catch (const std::exception& error) {
    return Error{ErrorKind::invalid, fmt::format("card {} cannot be used: {}", options.card, error.what())};
  }
}

}  // namespace gossamer::gpu::cuda
