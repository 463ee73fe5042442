#include "gpu/cuda/memory/copy_stream.hpp"

#include <memory>

namespace gossamer::gpu::cuda {
namespace {

void CUDART_CB call_done(void* argument) {
  const std::unique_ptr<std::function<void()>> done(static_cast<std::function<void()>*>(argument));
  (*done)();
}

}  // namespace

void CopyStream::begin(StreamContext& context, void* to, const void* from, std::size_t bytes,
                       cudaMemcpyKind kind, std::function<void()> done) {
  auto callback = std::make_unique<std::function<void()>>(std::move(done));
  const std::lock_guard lock(mutex_);
  GOSSAMER_CUDA(cudaEventRecord, context.event(), context.stream());
  GOSSAMER_CUDA(cudaStreamWaitEvent, stream_.get(), context.event(), 0);
  if (bytes > 0) GOSSAMER_CUDA(cudaMemcpyAsync, to, from, bytes, kind, stream_.get());
  GOSSAMER_CUDA(cudaLaunchHostFunc, stream_.get(), call_done, callback.get());
  static_cast<void>(callback.release());  // call_done owns it now
}

}  // namespace gossamer::gpu::cuda
