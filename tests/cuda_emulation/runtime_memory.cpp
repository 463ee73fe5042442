// GPUs, errors and memory of the emulated runtime.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "memory.hpp"
#include "streams.hpp"

using namespace gossamer::emulation;

namespace {

thread_local int current = 0;

/// By GPU: the GPUs whose memory its kernels may access if the machine has peer access, itself
/// included.
std::mutex reach_mutex;
std::array<Gpus, kMostGpus> reach_of = [] {
  std::array<Gpus, kMostGpus> gpus{};
  for (int gpu = 0; gpu < kMostGpus; ++gpu) gpus[static_cast<std::size_t>(gpu)] = only(gpu);
  return gpus;
}();

bool is_pair(int gpu, int peer) {
  const int count = engine().settings().gpus;
  return gpu >= 0 && gpu < count && peer >= 0 && peer < count && gpu != peer;
}

/// Pinned memory: begin → bytes.
struct Pinned {
  std::mutex mutex;
  std::map<const char*, std::size_t> blocks;

  bool holds(const void* memory, std::size_t bytes) {
    const std::lock_guard lock(mutex);
    const char* begin = static_cast<const char*>(memory);
    const auto next = blocks.upper_bound(begin);
    if (next == blocks.begin()) return false;
    const auto& [block, size] = *std::prev(next);
    return begin + bytes <= block + size;
  }
};

Pinned& pinned() {
  static Pinned* const blocks = new Pinned;
  return *blocks;
}

}  // namespace

namespace gossamer::emulation {

bool is_pinned(const void* memory, std::size_t bytes) { return pinned().holds(memory, bytes); }

bool is_global(const void* address) { return arena().touches(address, 1) || is_pinned(address, 1); }

void assumption_broken(const char* assumption) {
  std::fprintf(stderr, "emulated GPU: a kernel assumes what does not hold: %s\n", assumption);
  std::abort();
}

void require_reachable(const void* memory, std::size_t bytes, const char* reader) {
  if (bytes == 0 || arena().holds(memory, bytes) || is_pinned(memory, bytes)) return;
  std::fprintf(stderr, "emulated GPU: %s is given %zu bytes that no GPU can access\n", reader,
               bytes);
  std::abort();
}

}  // namespace gossamer::emulation

namespace {

cudaError_t usable_gpus(int& count) {
  const Settings settings = engine().settings();
  count = 0;
  if (settings.driver_version < CUDART_VERSION / 1000 * 1000) return cudaErrorInsufficientDriver;
  if (settings.gpus == 0) return cudaErrorNoDevice;
  count = settings.gpus;
  return cudaSuccess;
}

/// The start of every call that needs a GPU.
cudaError_t begin_on_gpu(const char* name) {
  if (const cudaError_t error = engine().begin(name); error != cudaSuccess) return error;
  int count = 0;
  return remember(usable_gpus(count));
}

}  // namespace

cudaError_t cudaGetDeviceCount(int* count) {
  GOSSAMER_BEGIN(engine().begin("cudaGetDeviceCount"));
  return remember(usable_gpus(*count));
}
cudaError_t cudaSetDevice(int gpu) {
  GOSSAMER_BEGIN(begin_on_gpu("cudaSetDevice"));
  if (gpu < 0 || gpu >= engine().settings().gpus) return remember(cudaErrorInvalidDevice);
  current = gpu;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* gpu) {
  GOSSAMER_BEGIN(begin_on_gpu("cudaGetDevice"));
  *gpu = current;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int gpu) {
  GOSSAMER_BEGIN(begin_on_gpu("cudaGetDeviceProperties"));
  if (gpu < 0 || gpu >= engine().settings().gpus) return remember(cudaErrorInvalidDevice);
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "Emulated GPU");
  properties->totalGlobalMem = engine().settings().memory_per_gpu;
  properties->sharedMemPerBlock = 48 * 1024;
  properties->regsPerBlock = 65536;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = 1024;
  const int threads[] = {1024, 1024, 64}, grid[] = {0x7FFFFFFF, 65535, 65535};
  std::copy_n(threads, 3, properties->maxThreadsDim);
  std::copy_n(grid, 3, properties->maxGridSize);
  properties->major = engine().settings().compute_major;
  properties->multiProcessorCount = 4;
  properties->l2CacheSize = 1 << 20;
  properties->memoryBusWidth = 512;
  properties->asyncEngineCount = 2;
  properties->pciBusID = gpu + 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int gpu) {
  cudaDeviceProp properties;
  GOSSAMER_BEGIN(cudaGetDeviceProperties(&properties, gpu));
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount: *value = properties.multiProcessorCount; break;
    case cudaDevAttrComputeCapabilityMajor: *value = properties.major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = properties.minor; break;
  }
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int gpu, int peer) {
  GOSSAMER_BEGIN(begin_on_gpu("cudaDeviceCanAccessPeer"));
  if (!is_pair(gpu, peer)) return remember(cudaErrorInvalidDevice);
  *can = engine().settings().peer_access ? 1 : 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  GOSSAMER_BEGIN(begin_on_gpu("cudaDeviceEnablePeerAccess"));
  if (!is_pair(current, peer)) return remember(cudaErrorInvalidDevice);
  if (!engine().settings().peer_access) return remember(cudaErrorPeerAccessUnsupported);
  const std::lock_guard lock(reach_mutex);
  Gpus& reached = reach_of[static_cast<std::size_t>(current)];
  if ((reached & only(peer)) != 0) return remember(cudaErrorPeerAccessAlreadyEnabled);
  reached |= only(peer);
  return cudaSuccess;
}
cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  GOSSAMER_BEGIN(begin_on_gpu("cudaDeviceDisablePeerAccess"));
  if (!is_pair(current, peer)) return remember(cudaErrorInvalidDevice);
  const std::lock_guard lock(reach_mutex);
  Gpus& reached = reach_of[static_cast<std::size_t>(current)];
  if ((reached & only(peer)) == 0) return remember(cudaErrorPeerAccessNotEnabled);
  reached &= ~only(peer);
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  GOSSAMER_BEGIN(engine().begin("cudaDriverGetVersion"));
  *version = engine().settings().driver_version;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetLastError() { return last_error(true); }
cudaError_t cudaPeekAtLastError() { return last_error(false); }

#define GOSSAMER_ERRORS(X)                                                                        \
  X(cudaSuccess, "no error")                                                                      \
  X(cudaErrorInvalidValue, "invalid argument")                                                    \
  X(cudaErrorMemoryAllocation, "out of memory")                                                   \
  X(cudaErrorInvalidConfiguration, "invalid configuration argument")                              \
  X(cudaErrorInvalidDevicePointer, "invalid device pointer")                                      \
  X(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy")                         \
  X(cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version")  \
  X(cudaErrorNoDevice, "no CUDA-capable device is detected")                                      \
  X(cudaErrorInvalidDevice, "invalid device ordinal")                                             \
  X(cudaErrorInvalidResourceHandle, "invalid resource handle")                                    \
  X(cudaErrorPeerAccessUnsupported, "peer access is not supported between these two devices")     \
  X(cudaErrorNotReady, "device not ready")                                                        \
  X(cudaErrorIllegalAddress, "an illegal memory access was encountered")                          \
  X(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled")                          \
  X(cudaErrorPeerAccessNotEnabled, "peer access has not been enabled")                            \
  X(cudaErrorLaunchFailure, "unspecified launch failure")                                         \
  X(cudaErrorNotPermitted, "operation not permitted")                                             \
  X(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing")        \
  X(cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture") \
  X(cudaErrorStreamCaptureUnmatched, "capture was not initiated in this stream")                  \
  X(cudaErrorStreamCaptureWrongThread,                                                            \
    "attempt to terminate a thread-local capture sequence from another thread")                   \
  X(cudaErrorUnknown, "unknown error")

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
#define GOSSAMER_NAME(Name, words) \
  case Name: return #Name;
    GOSSAMER_ERRORS(GOSSAMER_NAME)
  }
  return "unrecognized error code";
}
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
#define GOSSAMER_WORDS(Name, words) \
  case Name: return words;
    GOSSAMER_ERRORS(GOSSAMER_WORDS)
  }
  return "unrecognized error code";
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  GOSSAMER_BEGIN(begin_on_gpu("cudaMalloc"));
  GOSSAMER_BEGIN(engine().forbid_in_capture());
  *memory = nullptr;
  if (bytes == 0) return cudaSuccess;
  engine().count(&Counts::allocations);
  *memory = arena().allocate(current, bytes, engine().settings().memory_per_gpu);
  return *memory != nullptr ? cudaSuccess : remember(cudaErrorMemoryAllocation);
}

cudaError_t cudaFree(void* memory) {
  GOSSAMER_BEGIN_FREEING(begin_on_gpu("cudaFree"));
  GOSSAMER_BEGIN(engine().forbid_in_capture());
  if (memory == nullptr) return engine().lost();
  engine().wait_gpu(arena().gpu_of(memory));
  return arena().release(memory) ? engine().lost() : remember(cudaErrorInvalidValue);
}

cudaError_t cudaMallocHost(void** memory, std::size_t bytes, unsigned) {
  GOSSAMER_BEGIN(begin_on_gpu("cudaMallocHost"));
  GOSSAMER_BEGIN(engine().forbid_in_capture());
  *memory = nullptr;
  if (bytes == 0) return cudaSuccess;
  if (::posix_memalign(memory, 256, bytes) != 0) return remember(cudaErrorMemoryAllocation);
  std::memset(*memory, 0xFF, bytes);
  const std::lock_guard lock(pinned().mutex);
  pinned().blocks[static_cast<const char*>(*memory)] = bytes;
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* memory) {
  GOSSAMER_BEGIN_FREEING(begin_on_gpu("cudaFreeHost"));
  GOSSAMER_BEGIN(engine().forbid_in_capture());
  if (memory == nullptr) return engine().lost();
  engine().wait_all();
  {
    const std::lock_guard lock(pinned().mutex);
    if (pinned().blocks.erase(static_cast<const char*>(memory)) == 0)
      return remember(cudaErrorInvalidValue);
  }
  std::free(memory);
  return engine().lost();
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  GOSSAMER_BEGIN(begin_on_gpu("cudaMemGetInfo"));
  *total = engine().settings().memory_per_gpu;
  *free = *total - std::min(*total, arena().used(current));
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  GOSSAMER_BEGIN(begin_on_gpu("cudaMemcpyAsync"));
  if (!engine().knows(stream)) return remember(cudaErrorInvalidResourceHandle);
  if (bytes == 0) return cudaSuccess;
  if (to == nullptr || from == nullptr) return remember(cudaErrorInvalidValue);
  const bool to_gpu = arena().touches(to, bytes), from_gpu = arena().touches(from, bytes);
  if ((to_gpu && !arena().holds(to, bytes)) || (from_gpu && !arena().holds(from, bytes)))
    return remember(cudaErrorInvalidValue);
  const cudaMemcpyKind real = to_gpu
                                  ? (from_gpu ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice)
                                  : (from_gpu ? cudaMemcpyDeviceToHost : cudaMemcpyHostToHost);
  if (kind != cudaMemcpyDefault && kind != real) return remember(cudaErrorInvalidValue);
  auto copied = &Counts::bytes_within;
  if (real == cudaMemcpyHostToDevice) copied = &Counts::bytes_up;
  if (real == cudaMemcpyDeviceToHost) copied = &Counts::bytes_down;
  const auto copy = [to, bytes, copied](const void* source) {
    engine().count(copied, bytes);
    const Arena::Open open;
    std::memmove(to, source, bytes);
  };
  const bool pageable =
      (!to_gpu && !pinned().holds(to, bytes)) || (!from_gpu && !pinned().holds(from, bytes));
  if (!pageable) return engine().ask(stream, {.work = [copy, from] { copy(from); }});
  // On a GPU, copies from and to pageable memory are complete when the call returns.
  engine().count(&Counts::pageable_copies);
  if (engine().captures(stream))
    return engine().ask(stream, {.work = [copy, from] { copy(from); }});
  engine().wait_stream(stream);
  copy(from);
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  GOSSAMER_BEGIN(engine().forbid_in_capture());
  engine().count(&Counts::synchronisations);
  engine().wait_all();
  GOSSAMER_BEGIN(cudaMemcpyAsync(to, from, bytes, kind, nullptr));
  engine().wait_stream(nullptr);
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  GOSSAMER_BEGIN(begin_on_gpu("cudaMemsetAsync"));
  if (!engine().knows(stream)) return remember(cudaErrorInvalidResourceHandle);
  if (bytes == 0) return cudaSuccess;
  if (!arena().holds(memory, bytes)) return remember(cudaErrorInvalidValue);
  return engine().ask(stream, {.work = [memory, value, bytes] {
                        const Arena::Open open(only(arena().gpu_of(memory)));
                        std::memset(memory, value, bytes);
                      }});
}
cudaError_t cudaMemset(void* memory, int value, std::size_t bytes) {
  GOSSAMER_BEGIN(engine().forbid_in_capture());
  engine().wait_all();
  return cudaMemsetAsync(memory, value, bytes, nullptr);
}

namespace gossamer::emulation {

int current_gpu() { return current; }

Gpus reach(int gpu) {
  if (!engine().settings().peer_access) return only(gpu);
  const std::lock_guard lock(reach_mutex);
  return reach_of[static_cast<std::size_t>(gpu)];
}

std::size_t pinned_blocks() {
  const std::lock_guard lock(pinned().mutex);
  return pinned().blocks.size();
}

}  // namespace gossamer::emulation
