#include "gpu/cuda/stream_context.hpp"

#include <algorithm>
#include <bit>

#include "gpu/cuda/training/plan_cache.hpp"

namespace gossamer::gpu::cuda {

StreamContext::StreamContext(const BlasFunctions& blas, Urgency urgency, std::mutex& capturing)
    : blas_(blas),
      capturing_(capturing),
      stream_(make_stream(urgency)),
      plans_(std::make_unique<PlanCache>(stream_.get())) {}

StreamContext::~StreamContext() {
  static_cast<void>(
      cudaStreamSynchronize(stream()));  // no work may use the memory that is freed now
}

Products& StreamContext::products() {
  if (!products_) products_.emplace(blas_, stream());
  return *products_;
}

void* StreamContext::scratch(std::size_t bytes) {
  if (bytes > scratch_.bytes()) {
    finish();
    scratch_ = {};
    scratch_ = DeviceBuffer(std::bit_ceil(std::max<std::size_t>(bytes, 1 << 16)));
  }
  return scratch_.data();
}

const void* StreamContext::fetch(const void* device, std::size_t bytes) {
  if (bytes > fetched_.bytes()) {
    fetched_ = {};
    fetched_ = PinnedBuffer(std::bit_ceil(std::max<std::size_t>(bytes, 1 << 12)));
  }
  if (bytes > 0)
    GOSSAMER_CUDA(cudaMemcpyAsync, fetched_.data(), device, bytes, cudaMemcpyDeviceToHost,
                  stream());
  finish();
  return fetched_.data();
}

}  // namespace gossamer::gpu::cuda
