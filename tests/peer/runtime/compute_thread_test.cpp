// The thread that computes: where its tasks run, and in which order with what the scheduler's
// thread does on the device.
#include "peer/runtime/compute_thread.hpp"

#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

#include "gpu/cpu_device.hpp"

using namespace gossamer;
using namespace gossamer::peer;

namespace {

/// Writes down the calls that order the work of threads.
class OrderedDevice final : public gpu::CpuDevice {
 public:
  OrderedDevice() : gpu::CpuDevice(1) {}

  void give_way() override {
    if (fails) throw std::runtime_error("no stream");
    note("gives way");
  }
  std::shared_ptr<const void> mark() override {
    note("mark");
    return std::make_shared<int>(++marks_);
  }
  void wait(const std::shared_ptr<const void>& mark) override {
    note("wait for " + std::to_string(*static_cast<const int*>(mark.get())));
  }
  void finish() override { note("finish"); }

  void note(const std::string& what) {
    const std::lock_guard lock(mutex_);
    calls_.push_back((std::this_thread::get_id() == scheduler_ ? "scheduler: " : "computes: ") +
                     what);
  }
  /// Those of one thread.
  std::vector<std::string> calls(const std::string& of) {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> found;
    for (const std::string& call : calls_)
      if (call.starts_with(of)) found.push_back(call.substr(of.size() + 2));
    return found;
  }

  bool fails = false;

 private:
  const std::thread::id scheduler_ = std::this_thread::get_id();
  std::mutex mutex_;
  std::vector<std::string> calls_;
  int marks_ = 0;
};

using Calls = std::vector<std::string>;

}  // namespace

TEST_CASE("tasks wait for what the scheduler's thread has asked the device for, and it never") {
  OrderedDevice device;
  net::RealScheduler scheduler;
  ComputeThread thread(scheduler, device, [](const Error& error) { FAIL(error.message); });
  int done = 0;
  for (const char* task : {"task 1", "task 2"})
    thread.execute([&device, task] { device.note(task); },
                   [&] {
                     device.note("done");
                     ++done;
                   });
  scheduler.run_until([&] { return done == 2; });
  CHECK(device.calls("scheduler") == Calls{"mark", "mark", "done", "done"});
  CHECK(device.calls("computes") ==
        Calls{"gives way", "wait for 1", "task 1", "finish", "wait for 2", "task 2", "finish"});
}

TEST_CASE("a device that fails before the first task is reported, and no task runs") {
  OrderedDevice device;
  device.fails = true;
  net::RealScheduler scheduler;
  std::string failure;
  ComputeThread thread(scheduler, device, [&](const Error& error) { failure = error.message; });
  thread.execute([] { FAIL("the task runs"); }, [] { FAIL("the task is done"); });
  scheduler.run_until([&] { return !failure.empty(); });
  CHECK(failure == "no stream");
}
