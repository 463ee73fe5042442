#include "gpu/cuda/memory/copy_stream.hpp"

#include <fmt/format.h>

#include <exception>
#include <utility>

namespace gossamer::gpu::cuda {

CopyStream::~CopyStream() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (reporter_.joinable()) reporter_.join();
}

void CopyStream::begin(StreamContext& context, void* to, const void* from, std::size_t bytes,
                       cudaMemcpyKind kind, CopyDone done) {
  const std::lock_guard lock(mutex_);
  if (!reporter_.joinable()) reporter_ = std::thread([this] { report(); });
  Event over = take_event();
  GOSSAMER_CUDA(cudaEventRecord, context.event(), context.stream());
  GOSSAMER_CUDA(cudaStreamWaitEvent, stream_.get(), context.event(), 0);
  if (bytes > 0) GOSSAMER_CUDA(cudaMemcpyAsync, to, from, bytes, kind, stream_.get());
  GOSSAMER_CUDA(cudaEventRecord, over.get(), stream_.get());
  copies_.push_back({std::move(over), std::move(done)});
  changed_.notify_all();
}

/// One that the reporter sleeps for: it would take a core from the arithmetic otherwise.
Event CopyStream::take_event() {
  if (!unused_.empty()) {
    Event event = std::move(unused_.back());
    unused_.pop_back();
    return event;
  }
  cudaEvent_t event = nullptr;
  GOSSAMER_CUDA(cudaEventCreateWithFlags, &event, cudaEventDisableTiming | cudaEventBlockingSync);
  return Event(event);
}

void CopyStream::report() {
  static_cast<void>(cudaSetDevice(gpu_));  // an error comes with the first event
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ends_ || !copies_.empty(); });
    if (copies_.empty()) return;
    Event over = std::move(copies_.front().over);
    const CopyDone done = std::move(copies_.front().done);
    copies_.pop_front();
    lock.unlock();
    done(wait_for(over));
    lock.lock();
    unused_.push_back(std::move(over));
  }
}

Status CopyStream::wait_for(const Event& over) const {
  try {
    GOSSAMER_CUDA(cudaEventSynchronize, over.get());
    return {};
  } catch (const std::exception& failure) {
    return Error{ErrorKind::internal, fmt::format("cuda:{}: {}", gpu_, failure.what())};
  }
}

}  // namespace gossamer::gpu::cuda
