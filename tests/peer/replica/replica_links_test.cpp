// What the thread that trains hands to the network of a replica.
#include <atomic>
#include <thread>

#include "peer/replica/replica_links.hpp"
#include "tests/text_test_util.hpp"

using namespace gossamer;
using namespace gossamer::peer;

TEST_CASE("messages are taken in the order sent, and the end after them") {
  ReplicaLinks links(0, 3);
  int woken = 0;
  links.connect([&] { ++woken; });
  const std::vector<float> first{1, 2}, second{3};
  links.send(1, first);
  links.send(0, second);
  CHECK(woken == 2);
  links.finish();
  const ReplicaLinks::Work work = links.take();
  REQUIRE(work.outgoing.size() == 2);
  CHECK(work.outgoing[0].part == 1);
  CHECK(work.outgoing[0].values == first);
  CHECK(work.outgoing[1].part == 0);
  CHECK_FALSE(work.wanted.has_value());
  CHECK(work.done);
  CHECK(links.take().outgoing.empty());
}

TEST_CASE(
    "what was sent before a wait is taken with it, and a message that has come ends the wait") {
  ReplicaLinks links(0, 3);
  std::vector<float> got(3);
  std::thread trainer([&] {
    for (float k = 0; k < 2000; ++k) {
      links.send(2, std::vector<float>{k});
      links.receive(2, got);
    }
  });
  // Without a wait for the other thread, so that take() comes between any two of its steps. An
  // answer depends on the message before it.
  std::vector<float> sent;
  for (std::size_t waits = 0; waits < 2000;) {
    const ReplicaLinks::Work work = links.take();
    for (const ReplicaLinks::Message& message : work.outgoing) sent.push_back(message.values[0]);
    if (!work.wanted) continue;
    CHECK(work.wanted->part == 2);
    CHECK(work.wanted->values == 3);
    CHECK(sent.size() == ++waits);
    CHECK_FALSE(links.take().wanted.has_value());
    links.arrived(std::vector<float>{4, 5, static_cast<float>(waits)});
  }
  trainer.join();
  CHECK(got == std::vector<float>{4, 5, 2000});
}

TEST_CASE("what workers agree on leaves before what they send next") {
  ReplicaLinks links(0, 3);
  links.begin(true);
  const std::vector<float> first{1, 2};
  links.send(1, first);
  const ReplicaLinks::Work work = links.take();
  CHECK(work.outgoing.size() == 1);
  REQUIRE(work.agreement.size() == 2);
  CHECK(work.agreement[0].part == 1);
  CHECK(work.agreement[1].part == 2);
  CHECK(links.take_agreement().empty());
}

TEST_CASE("a close ends a wait and each later call, with the first reason") {
  ReplicaLinks links(0, 3);
  std::atomic<bool> wanted = false;
  links.connect([&] { wanted = true; });
  std::string why;
  std::thread trainer([&] {
    std::vector<float> got(1);
    try {
      links.receive(1, got);
    } catch (const train::WorkerLost& lost) {
      why = lost.what();
    }
  });
  while (!wanted) std::this_thread::yield();
  links.close("peer 1 was lost");
  links.close();
  trainer.join();
  CHECK(why == "peer 1 was lost");
  std::vector<float> late(1);
  CHECK_THROWS_AS(links.receive(1, late), train::WorkerLost);
  CHECK_THROWS_AS(links.send(1, late), train::WorkerLost);
  links.arrived(late);  // too late: no call waits
}
