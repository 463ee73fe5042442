// CUDA on the CPU, for tests: what a test may set and read. The C++ compiler compiles the sources
// of src/gpu/cuda against cuda_runtime.h and cublas_v2.h of this folder. So every kernel runs on
// machines without a GPU, and mistakes that show only sometimes on a GPU show every time:
//   - the host cannot read memory of a GPU (it is a page fault), nor can another GPU without peer
//     access, and kernels find NaN in memory that was never written, a block's shared memory
//     included;
//   - a kernel or a product that is given memory of the host stops the program, if it is not
//   pinned;
//   - a write past the end of a block of memory stops the program when the block is freed;
//   - the threads of a block, and the blocks of a grid, run in an order that the test chooses, so a
//     missing barrier shows;
//   - launches, captures and copies have the limits of a GPU.
// The emulation says nothing about speed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gossamer::emulation {

/// The order of threads between two barriers, and of the blocks of a grid.
enum class Order { ascending, descending, shuffled };

inline constexpr int kMostGpus = 8;

struct Settings {
  int gpus = 1;             ///< at most kMostGpus
  bool peer_access = true;  ///< whether GPUs can get access to each other's memory
  std::size_t memory_per_gpu = std::size_t{1} << 30;  ///< bytes
  int compute_major = 9;                              ///< of the GPUs' compute capability
  int driver_version = 13000;  ///< as CUDA counts: 1000 · major + 10 · minor; 0: no driver
  bool blas_installed = true;
  Order order = Order::ascending;
  std::uint64_t seed = 1;  ///< of Order::shuffled and of `late`
  /// false: a stream's work is done within the call that enqueues it. true: another thread does it
  /// later, with streams in a random order as far as events allow, so that races between streams or
  /// with the host show.
  bool late = false;
};

/// Waits for all work and applies the settings. GPUs and memory in use do not change. A program
/// starts with the defaults; the environment variable GOSSAMER_EMULATED_GPUS sets the number of
/// GPUs.
void set(const Settings& settings);
Settings settings();

/// Applies settings for its lifetime.
class With {
 public:
  explicit With(const Settings& changed) : before_(settings()) { set(changed); }
  ~With() { set(before_); }
  With(const With&) = delete;
  With& operator=(const With&) = delete;

 private:
  Settings before_;
};

/// Counts of CUDA calls of all threads since the program's start; tests take differences.
struct Counts {
  std::uint64_t launches = 0;  ///< kernels launched one by one, captured ones not counted
  std::uint64_t kernels = 0;   ///< kernels run, graphs included
  std::array<std::uint64_t, kMostGpus> kernels_of = {};  ///< the same by GPU
  std::uint64_t products = 0;                            ///< cuBLAS calls run, graphs included
  std::uint64_t captures = 0;
  std::uint64_t graph_launches = 0;
  std::uint64_t synchronisations = 0;  ///< of streams, events and devices: the host waits
  std::uint64_t allocations = 0;       ///< of memory of a GPU
  std::uint64_t pageable_copies =
      0;  ///< asynchronous copies from or to host memory that is not pinned; on a GPU they wait
  std::uint64_t bytes_up = 0, bytes_down = 0, bytes_within = 0;  ///< copied, graphs included
};
Counts counts();

/// Bytes of GPU memory, blocks of pinned memory, streams, events and graphs that exist now.
struct Holdings {
  std::size_t gpu_bytes = 0, pinned_blocks = 0, streams = 0, events = 0, graphs = 0;
  bool operator==(const Holdings&) const = default;
};
Holdings holdings();

/// The priorities of the streams that exist now, in the order in which they were made.
std::vector<int> priorities();

/// The GPU that holds the memory; −1: none.
int gpu_of(const void* memory);

/// The `skip`+1st next call to `name` ("cudaMalloc", …) fails with CUDA's error number `error`.
void fail(const char* name, int error, int skip = 0);
/// The same, and all calls after it fail too, until settings are set: as after a fault of a kernel,
/// which CUDA reports from then on. Functions that free something do so all the same. A program
/// begins so with the environment variable GOSSAMER_EMULATED_LOSS = "name:skip".
void lose_gpus(const char* name, int skip = 0);

}  // namespace gossamer::emulation
