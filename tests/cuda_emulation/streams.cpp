#include "streams.hpp"

#include <algorithm>
#include <cstdlib>

#include "grid.hpp"
#include "memory.hpp"

namespace gossamer::emulation {
namespace {

thread_local cudaError_t last = cudaSuccess;
thread_local bool in_host_function = false;

bool is_idle(const CUstream_st& stream) { return stream.queue.empty() && !stream.busy; }

}  // namespace

cudaError_t remember(cudaError_t error) {
  if (error != cudaSuccess) last = error;
  return error;
}

cudaError_t last_error(bool forget) {
  const cudaError_t error = last;
  if (forget) last = cudaSuccess;
  return error;
}

Engine& engine() {
  static Engine* const the_engine =
      new Engine;  // never destroyed: its thread may wait for work until the program ends
  return *the_engine;
}

Engine::Engine() {
  streams_.push_back(std::make_unique<CUstream_st>());
  if (const char* gpus = std::getenv("GOSSAMER_EMULATED_GPUS"))
    settings_.gpus = std::clamp(std::atoi(gpus), 0, kMostGpus);
  if (const char* loss = std::getenv("GOSSAMER_EMULATED_LOSS")) {
    const std::string text = loss;
    const std::size_t colon = text.find(':');
    lose_gpus(text.substr(0, colon).c_str(), std::atoi(text.substr(colon + 1).c_str()));
  }
}

void Engine::set(const Settings& settings) {
  wait_all();
  std::unique_lock lock(mutex_);
  settings_ = settings;
  lost_ = cudaSuccess;
  random_.seed(settings.seed);
  if (settings.late && !late_.joinable()) late_ = std::thread([this] { work_late(); });
  if (settings.late || !late_.joinable()) return;
  // A test may fork now. Its child would find the lock held by a thread that the child does not
  // have.
  std::thread ending = std::move(late_);
  changed_.notify_all();
  lock.unlock();
  ending.join();
}

Settings Engine::settings() {
  const std::lock_guard lock(mutex_);
  return settings_;
}

void Engine::fail(const char* name, int error, int skip) {
  const std::lock_guard lock(mutex_);
  failures_.push_back({name, static_cast<cudaError_t>(error), skip});
}

void Engine::lose_gpus(const char* name, int skip) {
  const std::lock_guard lock(mutex_);
  failures_.push_back({name, cudaErrorLaunchFailure, skip, /*lasts=*/true});
}

cudaError_t Engine::lost() {
  const std::lock_guard lock(mutex_);
  return lost_;
}

cudaError_t Engine::begin(const char* name) {
  if (in_host_function) return remember(cudaErrorNotPermitted);
  const std::lock_guard lock(mutex_);
  if (lost_ != cudaSuccess) return remember(lost_);
  const auto failure = std::ranges::find(failures_, std::string(name), &Failure::name);
  if (failure == failures_.end() || failure->skip-- > 0) return cudaSuccess;
  const cudaError_t error = failure->error;
  if (failure->lasts) lost_ = error;
  failures_.erase(failure);
  return remember(error);
}

cudaStream_t Engine::make_stream(int gpu, int priority) {
  const std::lock_guard lock(mutex_);
  streams_.push_back(std::make_unique<CUstream_st>());
  streams_.back()->gpu = gpu;
  streams_.back()->priority = priority;
  return streams_.back().get();
}

void Engine::destroy(cudaStream_t stream) {
  wait_stream(stream);
  const std::lock_guard lock(mutex_);
  std::erase_if(streams_, [&](const auto& one) { return one.get() == stream; });
}

bool Engine::knows(cudaStream_t stream) {
  const std::lock_guard lock(mutex_);
  return stream == nullptr ||
         std::ranges::any_of(streams_, [&](const auto& one) { return one.get() == stream; });
}

int Engine::gpu_of(cudaStream_t stream) { return stream == nullptr ? current_gpu() : stream->gpu; }

cudaError_t Engine::ask(cudaStream_t stream, Item item) {
  {
    const std::lock_guard lock(mutex_);
    if (stream == nullptr) stream = streams_.front().get();
    if (stream->capture) {
      if (item.kind == Item::Kind::wait) stream->capture->broken = true;
      if (stream->capture->broken) return remember(cudaErrorStreamCaptureInvalidated);
      stream->capture->items.push_back(std::move(item));
      return cudaSuccess;
    }
    if (settings_.late) {
      stream->queue.push_back(std::move(item));
      changed_.notify_all();
      return cudaSuccess;
    }
  }
  run(item);  // the work that it waits for is done
  return cudaSuccess;
}

void Engine::run(const Item& item) {
  if (item.kind == Item::Kind::host) {
    in_host_function = true;
    item.work();
    in_host_function = false;
  } else if (item.work) {
    item.work();
  }
}

void Engine::record(std::shared_ptr<EventState> event, cudaStream_t stream) {
  std::uint64_t ticket = 0;
  {
    const std::lock_guard lock(mutex_);
    ticket = ++event->asked;
  }
  ask(stream, {.work = [this, event, ticket] {
        const std::lock_guard lock(mutex_);
        event->done = std::max(event->done, ticket);
        event->when = std::chrono::steady_clock::now();
      }});
}

bool Engine::done(const EventState& event) {
  const std::lock_guard lock(mutex_);
  return event.done >= event.asked;
}

template <class Done>
void Engine::wait(std::unique_lock<std::mutex>& lock, Done done) {
  ++waiting_;
  changed_.notify_all();
  changed_.wait(lock, done);
  --waiting_;
}

void Engine::wait_event(const EventState& event) {
  std::unique_lock lock(mutex_);
  wait(lock, [&, ticket = event.asked] { return event.done >= ticket; });
}
void Engine::wait_stream(cudaStream_t stream) {
  std::unique_lock lock(mutex_);
  if (stream == nullptr) stream = streams_.front().get();
  wait(lock, [&] { return is_idle(*stream); });
}
void Engine::wait_gpu(int gpu) {
  std::unique_lock lock(mutex_);
  const auto others = [&](const auto& stream) {
    return stream->gpu != gpu && stream != streams_.front();
  };
  wait(lock, [&] {
    return std::ranges::all_of(
        streams_, [&](const auto& stream) { return others(stream) || is_idle(*stream); });
  });
}
void Engine::wait_all() {
  std::unique_lock lock(mutex_);
  wait(lock, [&] {
    return std::ranges::all_of(streams_, [](const auto& stream) { return is_idle(*stream); });
  });
}
bool Engine::idle(cudaStream_t stream) {
  const std::lock_guard lock(mutex_);
  return is_idle(stream == nullptr ? *streams_.front() : *stream);
}

/// A random stream whose next item may run.
CUstream_st* Engine::next_stream() {
  std::vector<CUstream_st*> ready;
  for (const auto& stream : streams_) {
    if (stream->queue.empty()) continue;
    const Item& item = stream->queue.front();
    if (item.kind != Item::Kind::wait || item.event->done >= item.ticket)
      ready.push_back(stream.get());
  }
  return ready.empty() ? nullptr : ready[random_() % ready.size()];
}

/// Runs nothing until a thread waits or no work has been added for a moment, so that the host runs
/// far ahead. Ends when Settings::late is off and no work is left.
void Engine::work_late() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return next_stream() != nullptr || !settings_.late; });
    if (next_stream() == nullptr) return;
    while (waiting_ == 0 &&
           changed_.wait_for(lock, std::chrono::microseconds(300)) == std::cv_status::no_timeout) {
    }
    while (CUstream_st* stream = next_stream()) {
      const Item item = std::move(stream->queue.front());
      stream->queue.pop_front();
      stream->busy = true;
      lock.unlock();
      run(item);
      lock.lock();
      stream->busy = false;
      changed_.notify_all();
    }
  }
}

cudaError_t Engine::begin_capture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  const std::lock_guard lock(mutex_);
  if (stream == nullptr) return remember(cudaErrorStreamCaptureUnsupported);
  if (stream->capture) return remember(cudaErrorInvalidValue);
  stream->capture = Capture{mode, std::this_thread::get_id(), false, {}};
  ++counts_.captures;
  return cudaSuccess;
}

cudaError_t Engine::end_capture(cudaStream_t stream, Items& items) {
  const std::lock_guard lock(mutex_);
  if (stream == nullptr || !stream->capture) return remember(cudaErrorStreamCaptureUnmatched);
  Capture capture = std::move(*stream->capture);
  if (capture.mode != cudaStreamCaptureModeRelaxed && capture.thread != std::this_thread::get_id())
    return remember(cudaErrorStreamCaptureWrongThread);
  stream->capture.reset();
  if (capture.broken) return remember(cudaErrorStreamCaptureInvalidated);
  items = std::move(capture.items);
  return cudaSuccess;
}

bool Engine::captures(cudaStream_t stream) {
  const std::lock_guard lock(mutex_);
  return stream != nullptr && stream->capture.has_value();
}

cudaError_t Engine::break_captures(const std::function<bool(const CUstream_st&)>& affected) {
  const std::lock_guard lock(mutex_);
  bool any = false;
  for (const auto& stream : streams_)
    if (stream->capture && affected(*stream)) stream->capture->broken = any = true;
  return any ? remember(cudaErrorStreamCaptureUnsupported) : cudaSuccess;
}

cudaError_t Engine::forbid_during_captures(int gpu) {
  return break_captures([gpu](const CUstream_st& stream) { return stream.gpu == gpu; });
}

cudaError_t Engine::forbid_in_capture() {
  return break_captures([](const CUstream_st& stream) {
    const Capture& capture = *stream.capture;
    return capture.mode == cudaStreamCaptureModeGlobal ||
           (capture.mode == cudaStreamCaptureModeThreadLocal &&
            capture.thread == std::this_thread::get_id());
  });
}

void Engine::count(std::uint64_t Counts::* what, std::uint64_t by) {
  const std::lock_guard lock(mutex_);
  counts_.*what += by;
}
void Engine::count_kernel(int gpu) {
  const std::lock_guard lock(mutex_);
  ++counts_.kernels;
  ++counts_.kernels_of[static_cast<std::size_t>(gpu)];
}
Counts Engine::counts() {
  const std::lock_guard lock(mutex_);
  return counts_;
}
std::size_t Engine::streams() {
  const std::lock_guard lock(mutex_);
  return streams_.size() - 1;
}

std::vector<int> Engine::priorities() {
  const std::lock_guard lock(mutex_);
  std::vector<int> priorities;
  for (std::size_t k = 1; k < streams_.size(); ++k) priorities.push_back(streams_[k]->priority);
  return priorities;
}

void set(const Settings& settings) { engine().set(settings); }
Settings settings() { return engine().settings(); }
std::vector<int> priorities() { return engine().priorities(); }
void fail(const char* name, int error, int skip) { engine().fail(name, error, skip); }
void lose_gpus(const char* name, int skip) { engine().lose_gpus(name, skip); }
Counts counts() { return engine().counts(); }

cudaError_t launch(Launch launch, cudaStream_t stream) {
  Engine& all = engine();
  if (const cudaError_t error = all.begin("cudaLaunchKernel"); error != cudaSuccess) return error;
  const dim3 &grid = launch.grid, &block = launch.block;
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  if (threads == 0 || threads > 1024 || block.z > 64 ||
      std::uint64_t{grid.x} * grid.y * grid.z == 0 || grid.x > 0x7FFFFFFF || grid.y > 65535 ||
      grid.z > 65535 || launch.shared_bytes != 0)
    return remember(cudaErrorInvalidConfiguration);
  if (launch.argument_bytes > 4096 || !all.knows(stream)) return remember(cudaErrorInvalidValue);
  const int gpu = all.gpu_of(stream);
  if (gpu != current_gpu()) return remember(cudaErrorInvalidResourceHandle);
  if (!all.captures(stream)) all.count(&Counts::launches);
  return all.ask(stream, {.work = [launch = std::move(launch), gpu, &all] {
                   all.count_kernel(gpu);
                   const Settings now = all.settings();
                   const Arena::Open open(reach(gpu));
                   run_grid(launch.grid, launch.block, launch.kernel, now.order,
                            now.seed + all.counts().kernels);
                 }});
}

}  // namespace gossamer::emulation
