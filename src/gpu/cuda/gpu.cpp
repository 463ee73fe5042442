#include "gpu/cuda/gpu.hpp"

#include <algorithm>
#include <cstring>

namespace gossamer::gpu::cuda {
namespace {

/// Bound on the workspace of one stream's training, for GPUs with much memory.
constexpr std::size_t kMostWorkspace = std::size_t{4} << 30;
/// Downloads up to this size go through pinned memory that exists already.
constexpr std::size_t kSmallDownload = 64 << 10;

}  // namespace

Gpu::Gpu(GpuInfo info, const BlasFunctions& blas) : info_(std::move(info)), blas_(blas) {
  make_current();
  downloads_ = std::make_unique<CopyStream>(info_.index);
  uploads_ = std::make_unique<CopyStream>(info_.index);
}

Gpu::~Gpu() { static_cast<void>(cudaSetDevice(info_.index)); }

StreamContext& Gpu::stream_context() {
  make_current();
  const std::lock_guard lock(mutex_);
  std::unique_ptr<StreamContext>& mine = contexts_[std::this_thread::get_id()];
  if (mine == nullptr) mine = std::make_unique<StreamContext>(blas_, Urgency::urgent, capturing_);
  return *mine;
}

void Gpu::give_way() {
  make_current();
  const std::lock_guard lock(mutex_);
  contexts_[std::this_thread::get_id()] =
      std::make_unique<StreamContext>(blas_, Urgency::patient, capturing_);
}

std::size_t Gpu::most_workspace() const { return std::min(kMostWorkspace, info_.memory_total / 8); }

void Gpu::enable_access_to(const Gpu& other) const {
  make_current();
  const cudaError_t error = cudaDeviceEnablePeerAccess(other.info_.index, 0);
  if (error == cudaErrorPeerAccessAlreadyEnabled)
    static_cast<void>(cudaGetLastError());  // enabled by another device of the program
  else check(error, "cudaDeviceEnablePeerAccess");
}

cudaEvent_t Gpu::record_event() {
  const StreamContext& mine = stream_context();
  GOSSAMER_CUDA(cudaEventRecord, mine.event(), mine.stream());
  return mine.event();
}

void Gpu::wait_for(cudaEvent_t event) {
  GOSSAMER_CUDA(cudaStreamWaitEvent, stream_context().stream(), event, 0);
}

void* Gpu::allocate(std::size_t bytes) {
  StreamContext& mine = stream_context();
  void* memory = nullptr;
  GOSSAMER_CUDA(cudaMalloc, &memory, std::max<std::size_t>(bytes, 1));
  GOSSAMER_CUDA(cudaMemsetAsync, memory, 0, std::max<std::size_t>(bytes, 1), mine.stream());
  mine.finish();  // zero for every thread
  return memory;
}

void Gpu::release(void* memory) noexcept {
  static_cast<void>(cudaSetDevice(info_.index));
  const std::lock_guard lock(capturing_);
  static_cast<void>(cudaDeviceSynchronize());
  static_cast<void>(cudaFree(memory));
  static_cast<void>(cudaGetLastError());  // which the next launch would report as its own
}

void Gpu::upload(void* device, const void* host, std::size_t bytes) {
  UploadRing& uploads = stream_context().uploads();
  for (std::size_t done = 0; done < bytes; done += UploadRing::kSegmentBytes) {
    const UploadRing::Slot slot =
        uploads.reserve(std::min(bytes - done, UploadRing::kSegmentBytes));
    std::memcpy(slot.host, static_cast<const std::byte*>(host) + done, slot.bytes);
    uploads.send(slot, static_cast<std::byte*>(device) + done);
  }
}

void Gpu::download(void* host, const void* device, std::size_t bytes) {
  StreamContext& mine = stream_context();
  if (bytes <= kSmallDownload) {
    std::memcpy(host, mine.fetch(device, bytes), bytes);
    return;
  }
  GOSSAMER_CUDA(cudaMemcpyAsync, host, device, bytes, cudaMemcpyDeviceToHost, mine.stream());
  mine.finish();
}

MemoryInfo Gpu::memory_info() const {
  make_current();
  MemoryInfo info;
  GOSSAMER_CUDA(cudaMemGetInfo, &info.free, &info.total);
  return info;
}

void* Gpu::allocate_host(std::size_t bytes) const {
  make_current();
  void* memory = nullptr;
  GOSSAMER_CUDA(cudaMallocHost, &memory, std::max<std::size_t>(bytes, 1));
  return memory;
}

void Gpu::release_host(void* memory) const noexcept {
  static_cast<void>(cudaSetDevice(info_.index));
  static_cast<void>(cudaFreeHost(memory));
  static_cast<void>(cudaGetLastError());
}

void Gpu::begin_download(void* host, const void* device, std::size_t bytes, CopyDone done) {
  downloads_->begin(stream_context(), host, device, bytes, cudaMemcpyDeviceToHost, std::move(done));
}
void Gpu::begin_upload(void* device, const void* host, std::size_t bytes, CopyDone done) {
  uploads_->begin(stream_context(), device, host, bytes, cudaMemcpyHostToDevice, std::move(done));
}

}  // namespace gossamer::gpu::cuda
