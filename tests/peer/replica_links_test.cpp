// What the thread that trains hands to the network of a replica.
#include <atomic>
#include <thread>

#include "peer/replica/replica_links.hpp"
#include "tests/text_test_util.hpp"

using namespace gossamer;
using namespace gossamer::peer;

TEST_CASE("messages leave in the order sent, and what is wanted is taken once") {
  ReplicaLinks links;
  int woken = 0;
  links.connect([&] { ++woken; });
  const std::vector<float> first{1, 2}, second{3};
  links.send(1, first);
  links.send(0, second);
  CHECK(woken == 2);
  CHECK_FALSE(links.take_wanted().has_value());
  auto message = links.take_outgoing();
  REQUIRE(message.has_value());
  CHECK(message->part == 1);
  CHECK(message->values == first);
  CHECK_FALSE(links.done());
  links.finish();
  CHECK_FALSE(links.done());  // a message is left
  message = links.take_outgoing();
  REQUIRE(message.has_value());
  CHECK(message->part == 0);
  CHECK_FALSE(links.take_outgoing().has_value());
  CHECK(links.done());
}

TEST_CASE("a message that has come ends the wait for it") {
  ReplicaLinks links;
  std::atomic<bool> wanted = false;
  links.connect([&] { wanted = true; });
  std::vector<float> got(3);
  std::thread trainer([&] { links.receive(2, got); });
  while (!wanted) std::this_thread::yield();
  std::optional<ReplicaLinks::Wanted> message;
  while (!message) message = links.take_wanted();
  CHECK(message->part == 2);
  CHECK(message->values == 3);
  CHECK_FALSE(links.take_wanted().has_value());
  links.arrived(std::vector<float>{4, 5, 6});
  trainer.join();
  CHECK(got == std::vector<float>{4, 5, 6});
}

TEST_CASE("a close ends a wait and each later call, with the first reason") {
  ReplicaLinks links;
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
  links.arrived(late);  // too late: nobody waits
}
