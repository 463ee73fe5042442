#include "gossip/task.hpp"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "gossip/row.hpp"

using namespace gossamer::gossip;

namespace {

task<int> add(int a, int b) { co_return a + b; }

task<void> count_to(int last, int& count) {
  for (int i = 0; i < last; ++i) count = co_await add(count, 1);
}

task<int> fail() {
  throw std::runtime_error("reason");
  co_return 0;
}

task<void> catch_it(std::string& what) {
  try {
    co_await fail();
  } catch (const std::runtime_error& error) {
    what = error.what();
  }
}

}  // namespace

TEST_CASE("a million awaits need no stack") {
  VirtualScheduler scheduler;
  int count = 0;
  task<void> counting = count_to(1000000, count);
  counting.start(scheduler);
  scheduler.run();
  CHECK(counting.done());
  CHECK(count == 1000000);
}

TEST_CASE("an exception comes out of the co_await") {
  VirtualScheduler scheduler;
  std::string what;
  task<void> catching = catch_it(what);
  catching.start(scheduler);
  scheduler.run();
  CHECK(what == "reason");
}

TEST_CASE(
    "timers fire in order of time, then of asking; the clock jumps; a cancelled one is silent") {
  using namespace std::chrono_literals;
  VirtualScheduler scheduler;
  std::vector<int> fired;
  scheduler.at(2s, [&] { fired.push_back(3); });
  scheduler.at(1s, [&] { fired.push_back(1); });
  scheduler.at(1s, [&] {
    fired.push_back(2);
    scheduler.after(500ms, [&] { fired.push_back(25); });
  });
  const auto cancelled = scheduler.at(1s, [&] { fired.push_back(-1); });
  scheduler.cancel(cancelled);
  scheduler.run();
  CHECK(fired == std::vector<int>{1, 2, 25, 3});
  CHECK(scheduler.now() == 2s);
}

TEST_CASE("stop ends the run and leaves what was not run") {
  VirtualScheduler scheduler;
  int fired = 0;
  for (int i = 0; i < 3; ++i)
    scheduler.at(Time(i), [&] {
      ++fired;
      scheduler.stop();
    });
  scheduler.run();
  CHECK(fired == 1);
}

TEST_CASE("a task destroyed while it waits runs no further") {
  VirtualScheduler scheduler;
  int count = 0;
  {
    task<void> counting = count_to(10, count);
  }
  scheduler.run();
  CHECK(count == 0);
}

namespace {

task<void> write_when_free(LeasedRow& row, bool& written) {
  co_await row.writable();
  written = true;
}

}  // namespace

TEST_CASE("a lent row is not written before every lease has ended") {
  VirtualScheduler scheduler;
  std::vector<float> memory(4);
  LeasedRow row;
  row.attach(scheduler, memory);
  Lease first = row.lease(), second = row.lease();
  bool written = false;
  task<void> writing = write_when_free(row, written);
  writing.start(scheduler);
  scheduler.run();
  CHECK_FALSE(written);
  first.end();
  scheduler.run();
  CHECK_FALSE(written);
  Lease moved = std::move(second);
  second.end();
  CHECK(row.leased());
  moved.end();
  scheduler.run();
  CHECK(written);
}

TEST_CASE("an exception of a task that is not awaited ends the scheduler's run") {
  VirtualScheduler scheduler;
  int count = 0;
  task<int> throwing = fail();
  task<void> counting = count_to(10, count);
  throwing.start(scheduler);
  counting.start(scheduler);
  CHECK_THROWS_WITH(scheduler.run(), "reason");
  CHECK(throwing.done());
  CHECK(count == 0);
  scheduler.run();  // what was not run stayed
  CHECK(count == 10);
}
