// Names whose lookup hangs: other names, and the end of the process, do not wait for it.
#include "net/io/name_lookup.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>

#include "net/io/real_scheduler.hpp"
#include "net/io/socket.hpp"

using namespace gossamer;
using namespace gossamer::net;

namespace {

/// Lookups that do not return until open() is called; shared with their threads.
struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_open = false;
  int calls = 0, returned = 0;

  Result<NameLookup::Addresses> pass(const std::string& name) {
    std::unique_lock lock(mutex);
    ++calls;
    changed.notify_all();
    if (name != "quick") changed.wait(lock, [this] { return is_open; });
    ++returned;
    changed.notify_all();
    if (name == "none") return Error{ErrorKind::network, "no such name"};
    return NameLookup::Addresses{"127.0.0.1", name};
  }
  void open() {
    const std::lock_guard lock(mutex);
    is_open = true;
    changed.notify_all();
  }
  /// Until as many lookups have returned, so that no thread outlives the test.
  void wait_for(int lookups) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return returned == lookups; });
  }
  void wait_for_calls(int lookups) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return calls == lookups; });
  }
};

}  // namespace

TEST_CASE("a name that hangs delays no other, and is looked up once for all who ask") {
  const auto gate = std::make_shared<Gate>();
  RealScheduler scheduler;
  NameLookup names(
      [&](std::function<void()> report) { scheduler.post_external(std::move(report)); },
      [gate](const std::string& name) { return gate->pass(name); });
  std::multiset<std::string> answers;
  const auto ask = [&](const std::string& name) {
    names.resolve(name, [&answers, name](const Result<NameLookup::Addresses>& found) {
      answers.insert(found.ok() ? found->back() : name + ": " + found.error().message);
    });
  };
  ask("slow"), ask("slow"), ask("none"), ask("quick");
  scheduler.run_until([&] { return !answers.empty(); });
  CHECK(answers == std::multiset<std::string>{"quick"});
  gate->open();
  scheduler.run_until([&] { return answers.size() == 4; });
  CHECK(answers == std::multiset<std::string>{"none: no such name", "quick", "slow", "slow"});
  CHECK(gate->calls == 3);
}

TEST_CASE("a bounded number of names is looked up at once, and the others in their turn") {
  const auto gate = std::make_shared<Gate>();
  constexpr int kNames = 2 * static_cast<int>(NameLookup::kMostThreads) + 3;
  RealScheduler scheduler;
  NameLookup names(
      [&](std::function<void()> report) { scheduler.post_external(std::move(report)); },
      [gate](const std::string& name) { return gate->pass(name); });
  int answers = 0;
  for (int i = 0; i < kNames; ++i)
    names.resolve("name" + std::to_string(i), [&](const auto& found) {
      CHECK(found.ok());
      ++answers;
    });
  gate->wait_for_calls(static_cast<int>(NameLookup::kMostThreads));
  gate->open();
  scheduler.run_until([&] { return answers == kNames; });
  CHECK(gate->calls == kNames);
}

TEST_CASE("the end does not wait for a lookup, which then reports to nobody") {
  const auto gate = std::make_shared<Gate>();
  bool called = false;
  {
    RealScheduler scheduler;
    NameLookup names(
        [&](std::function<void()> report) { scheduler.post_external(std::move(report)); },
        [gate](const std::string& name) { return gate->pass(name); });
    names.resolve("slow", [&](const auto&) { called = true; });
    gate->wait_for_calls(1);
  }
  gate->open();
  gate->wait_for(1);
  CHECK_FALSE(called);
}

TEST_CASE("names of this machine, and one that cannot be") {
  const auto local = NameLookup::system_lookup("localhost");
  REQUIRE(local.ok());
  for (const std::string& address : *local)
    CHECK((address == "::1" || address.starts_with("127.")));
  const auto none = NameLookup::system_lookup("no name at all");
  REQUIRE_FALSE(none.ok());
  CHECK_FALSE(none.error().message.empty());
}
