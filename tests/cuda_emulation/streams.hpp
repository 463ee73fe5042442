// Streams, events and captures behind the runtime's functions. Work is a list of closures, done at
// once or, with Settings::late, by a thread of the emulation.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "control.hpp"
#include "cuda_runtime.h"
#include "memory.hpp"

namespace gossamer::emulation {

/// How often an event was recorded: requests, and records done.
struct EventState {
  std::uint64_t asked = 0, done = 0;
  std::chrono::steady_clock::time_point when;
};

/// One piece of a stream's work.
struct Item {
  enum class Kind { device, host, wait };
  Kind kind = Kind::device;
  std::function<void()> work;
  std::shared_ptr<EventState> event = nullptr;  ///< `wait`: until it was done `ticket` times
  std::uint64_t ticket = 0;
};
using Items = std::vector<Item>;

struct Capture {
  cudaStreamCaptureMode mode;
  std::thread::id thread;
  bool broken = false;
  Items items;
};

}  // namespace gossamer::emulation

struct CUstream_st {
  int gpu = 0;
  int priority = 0;
  std::optional<gossamer::emulation::Capture> capture;
  std::deque<gossamer::emulation::Item> queue;
  bool busy = false;  ///< one of its items is running
};
struct CUevent_st {
  int gpu = 0;
  bool timed = true;
  std::shared_ptr<gossamer::emulation::EventState> state =
      std::make_shared<gossamer::emulation::EventState>();
};
struct CUgraph_st {
  gossamer::emulation::Items items;
};
struct CUgraphExec_st {
  std::shared_ptr<const gossamer::emulation::Items> items;
};

namespace gossamer::emulation {

/// All streams and their work. Thread: any.
class Engine {
 public:
  Engine();

  void set(const Settings& settings);
  Settings settings();
  void fail(const char* name, int error, int skip);
  void lose_gpus(const char* name, int skip);
  /// The error of all calls since lose_gpus() took effect, or cudaSuccess.
  cudaError_t lost();
  /// The start of every call of the runtime: returns the error that a test has requested, or the
  /// error of a call from a host function. Sets the thread's last error.
  cudaError_t begin(const char* name);

  cudaStream_t make_stream(int gpu, int priority);
  /// Waits for the stream's work.
  void destroy(cudaStream_t stream);
  bool knows(cudaStream_t stream);
  /// The stream's GPU; for the default stream, the calling thread's.
  int gpu_of(cudaStream_t stream);
  /// Captures, runs or queues the item. A null stream is the GPU's default stream.
  cudaError_t ask(cudaStream_t stream, Item item);

  void record(std::shared_ptr<EventState> event, cudaStream_t stream);
  bool done(const EventState& event);
  void wait_event(const EventState& event);
  void wait_stream(cudaStream_t stream);
  void wait_gpu(int gpu);
  void wait_all();
  bool idle(cudaStream_t stream);

  cudaError_t begin_capture(cudaStream_t stream, cudaStreamCaptureMode mode);
  cudaError_t end_capture(cudaStream_t stream, Items& items);
  bool captures(cudaStream_t stream);
  /// For calls that are not allowed during a capture: breaks the capture.
  cudaError_t forbid_in_capture();
  /// For a wait for a whole GPU, which is not allowed during any capture there, whatever its mode
  /// and its thread: breaks the captures.
  cudaError_t forbid_during_captures(int gpu);

  /// Adds to a count.
  void count(std::uint64_t Counts::* what, std::uint64_t by = 1);
  void count_kernel(int gpu);
  Counts counts();
  std::size_t streams();
  std::vector<int> priorities();

 private:
  /// Breaks the captures of the streams that are affected; an error if there are any.
  cudaError_t break_captures(const std::function<bool(const CUstream_st&)>& affected);
  void run(const Item& item);
  CUstream_st* next_stream();
  void work_late();
  template <class Done>
  void wait(std::unique_lock<std::mutex>& lock, Done done);

  std::mutex mutex_;
  std::condition_variable changed_;
  Settings settings_;
  Counts counts_;
  std::vector<std::unique_ptr<CUstream_st>> streams_;  // the first one is the default stream
  struct Failure {
    std::string name;
    cudaError_t error;
    int skip;
    bool lasts = false;
  };
  std::vector<Failure> failures_;
  cudaError_t lost_ = cudaSuccess;
  std::mt19937_64 random_;
  int waiting_ = 0;
  std::thread late_;
};

Engine& engine();

/// The calling thread's GPU.
int current_gpu();
/// The GPUs whose memory kernels of `gpu` may access now.
Gpus reach(int gpu);
std::size_t pinned_blocks();

/// Stores an error for cudaGetLastError, and returns it.
cudaError_t remember(cudaError_t error);
cudaError_t last_error(bool forget);

}  // namespace gossamer::emulation

/// Leaves the function with the expression's error.
#define GOSSAMER_BEGIN(expression) \
  if (const cudaError_t begin_error = (expression); begin_error != cudaSuccess) return begin_error
/// Leaves a function that frees something with the expression's error, unless all calls fail.
#define GOSSAMER_BEGIN_FREEING(expression)                 \
  if (const cudaError_t begin_error = (expression);        \
      begin_error != gossamer::emulation::engine().lost()) \
  return begin_error
