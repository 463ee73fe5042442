// A process of a network: its peers, its threads and signals, and how long it waits at its end.
#include <signal.h>

#include <thread>

#include "tests/net/test_util.hpp"

using namespace gossamer;
using namespace gossamer::net;
using namespace gossamer::net::words;

TEST_CASE("leave() waits for its patience although the scheduler is stopped") {
  World world(2);
  Process& a = world.add({0}, {{0, 1}});
  world.add({1}, {{0, 1}});
  world.join();
  world.scheduler.stop();
  a.network->leave(50ms);  // no peer answers: only the deadline ends it
  CHECK(a.said("said goodbye"));
}

TEST_CASE("a process hosts several peers, each with its own connections and bytes") {
  World world(4);
  const World::Pairs complete = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};
  Process& a = world.add({0, 2}, complete);
  Process& b = world.add({1, 3}, complete);
  world.join();
  Row row(100);
  a.network->link(0, 1).send(row.chunk(0, 1));
  a.network->link(2, 3).send(row.chunk(2, 3));
  a.network->link(2, 1).send(row.chunk(2, 1));
  world.run_until([&] { return b.memory.headers.size() == 3; });
  CHECK(a.network->traffic(0).data_bytes_sent == 472);
  CHECK(a.network->traffic(2).data_bytes_sent == 944);
  CHECK(b.network->traffic(1).data_bytes_received == 944);
  world.leave();
}

TEST_CASE("other threads reach the scheduler, and signals do") {
  RealScheduler scheduler;
  int calls = 0;
  std::thread worker([&] {
    for (int i = 0; i < 1000; ++i) scheduler.post_external([&] { ++calls; });
  });
  scheduler.run_until([&] { return calls == 1000; });
  worker.join();
  int got = 0;
  scheduler.on_interrupt([&](int signal) { got = signal; });
  ::kill(::getpid(), SIGTERM);
  scheduler.run_until([&] { return got != 0; });
  CHECK(got == SIGTERM);
}

TEST_CASE("a hangup that the process was started to ignore is passed on only where it is wanted") {
  ::signal(SIGHUP, SIG_IGN);
  for (const bool wanted : {false, true}) {
    RealScheduler scheduler;
    std::vector<int> got;
    scheduler.on_interrupt([&](int signal) { got.push_back(signal); }, wanted);
    ::kill(::getpid(), SIGHUP);
    ::kill(::getpid(), SIGTERM);
    scheduler.run_until([&] { return !got.empty() && got.back() == SIGTERM; });
    CHECK(got == (wanted ? std::vector{SIGHUP, SIGTERM} : std::vector{SIGTERM}));
  }
  ::signal(SIGHUP, SIG_DFL);
}

TEST_CASE("networks on threads of their own") {
  Folder folder;
  constexpr int kPeers = 4;
  std::vector<std::string> problems(kPeers);
  auto peer = [&](int id) {
    RealScheduler scheduler;
    Memory memory;
    NetworkSetup setup;
    setup.options.rendezvous = folder.path();
    setup.identity = identity(kPeers);
    setup.hosted = {id};
    for (int other : {(id + 1) % kPeers, (id + kPeers - 1) % kPeers})
      setup.pairs.push_back({id, other});
    setup.fault = [&](const Error& error) {
      problems[static_cast<std::size_t>(id)] = error.message;
      scheduler.stop();
    };
    auto network = std::move(Network::make(scheduler, std::move(setup), memory)).value();
    if (const Status joined = network->join(); !joined.ok()) {
      problems[static_cast<std::size_t>(id)] = joined.error().message;
      return;
    }
    network->release_chunks();
    Row row(10000, static_cast<float>(id));
    for (gossip::Round round = 0; round < 50; ++round) {
      for (int other : {(id + 1) % kPeers, (id + kPeers - 1) % kPeers})
        network->link(id, other).send(row.chunk(id, other, round));
      scheduler.run_until([&] { return memory.headers.size() >= 2 * (round + 1); });
    }
    network->leave();
    if (row.leases != 0) problems[static_cast<std::size_t>(id)] = "a lease is out";
  };
  std::vector<std::thread> threads;
  for (int id = 0; id < kPeers; ++id) threads.emplace_back(peer, id);
  for (auto& thread : threads) thread.join();
  for (const auto& problem : problems) CHECK(problem == "");
}
