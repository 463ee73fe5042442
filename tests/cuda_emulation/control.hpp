// CUDA on the CPU, for tests: what a test may set and ask. The very sources of src/gpu/cuda are
// compiled by the C++ compiler against cuda_runtime.h and cublas_v2.h of this folder, so that every
// kernel runs where there is no GPU, and so that mistakes which a GPU forgives now and then show
// every time:
//   - memory of a GPU cannot be read by the host (it is a page fault), nor by another GPU that
//   has not enabled peer access,
//     and kernels find NaN in what nobody has written;
//   - what is written past the end of a block of memory stops the program when the block is freed;
//   - the threads of a block, and the blocks of a grid, run in an order that the test chooses: a
//   missing barrier shows;
//   - limits of a launch, of a capture and of copies are those of a GPU.
// Nothing here says anything about speed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace gossamer::emulation {

/// In which order threads run between two barriers, and the blocks of a grid.
enum class Order { ascending, descending, shuffled };

inline constexpr int kMostGpus = 8;

struct Settings {
  int gpus = 1;             ///< at most kMostGpus
  bool peer_access = true;  ///< whether GPUs can be allowed to touch each other's memory
  std::size_t memory_per_gpu = std::size_t{1} << 30;  ///< bytes
  int driver_version = 13000;  ///< as CUDA counts: 1000 · major + 10 · minor; 0: no driver
  bool blas_installed = true;
  Order order = Order::ascending;
  std::uint64_t seed = 1;  ///< of Order::shuffled and of `late`
  /// false: work on a stream is done within the call that asks for it. true: another thread does it
  /// later, streams in a random order as far as events allow, so that what relies on luck between
  /// streams or with the host goes wrong.
  bool late = false;
};

/// Waits for all work and sets. GPUs and memory in use stay what they are. A program begins with
/// the defaults, but for the number of GPUs where GOSSAMER_EMULATED_GPUS tells it.
void set(const Settings& settings);
Settings settings();

/// Sets for as long as it lives.
class With {
 public:
  explicit With(const Settings& changed) : before_(settings()) { set(changed); }
  ~With() { set(before_); }
  With(const With&) = delete;
  With& operator=(const With&) = delete;

 private:
  Settings before_;
};

/// What was asked of CUDA, from all threads, since the program's start: take differences.
struct Counts {
  std::uint64_t launches = 0;  ///< kernels launched one by one, captured ones not counted
  std::uint64_t kernels = 0;   ///< kernels run, those of graphs included
  std::array<std::uint64_t, kMostGpus> kernels_of = {};  ///< the same by GPU
  std::uint64_t products = 0;  ///< calls to cuBLAS run, those of graphs included
  std::uint64_t captures = 0;
  std::uint64_t graph_launches = 0;
  std::uint64_t synchronisations = 0;  ///< of streams, events and devices: the host waits
  std::uint64_t allocations = 0;       ///< of memory of a GPU
  std::uint64_t pageable_copies =
      0;  ///< asynchronous ones from or to host memory that is not pinned: they wait on a GPU
  std::uint64_t bytes_up = 0, bytes_down = 0, bytes_within = 0;  ///< copied, graphs included
};
Counts counts();

/// Bytes of GPU memory, blocks of pinned memory, streams, events and graphs that nobody has given
/// back yet.
struct Holdings {
  std::size_t gpu_bytes = 0, pinned_blocks = 0, streams = 0, events = 0, graphs = 0;
  bool operator==(const Holdings&) const = default;
};
Holdings holdings();

/// The GPU that memory is on; −1: on none.
int gpu_of(const void* memory);

/// The `skip`+1st next call to `name` ("cudaMalloc", …) fails with CUDA's error number `error`.
void fail(const char* name, int error, int skip = 0);

}  // namespace gossamer::emulation
