// Processes that join a network which runs already.
#include <algorithm>

#include "tests/net/test_util.hpp"

using namespace gossamer;
using namespace gossamer::net;
using namespace gossamer::net::words;

namespace {

const World::Pairs kTriangle = {{0, 1}, {0, 2}, {1, 2}};

}  // namespace

TEST_CASE("any process of a network that runs may end and start again") {
  for (int peer : {0, 1, 2}) {
    World world(3);
    world.bears = true;
    for (int each : {0, 1, 2}) world.add({each}, kTriangle);
    world.join();
    CHECK(world.all([](Process& p) { return !p.network->late(); }));
    world.kill(*world.processes[static_cast<std::size_t>(peer)]);
    Process& newcomer = world.again(peer, kTriangle);
    CHECK(newcomer.network->late());
    CHECK(newcomer.journal.empty());
    CHECK(newcomer.lines.empty());
    for (std::size_t i : {0u, 1u}) {
      Process& other = *world.processes[i];
      const int id = static_cast<int>(i) + (static_cast<int>(i) >= peer ? 1 : 0);
      CHECK(newcomer.network->connected(peer, id));
      world.run_until([&] { return other.journal.size() == 2; });
      CHECK(other.journal ==
            Journal{fmt::format("lost {}-{}", id, peer), fmt::format("back {}-{}", id, peer)});
      CHECK_FALSE(other.network->late());
      check_carries(world, newcomer, peer, other, id);
      check_carries(world, other, id, newcomer, peer);
    }
    check_carries(world, *world.processes[0], peer == 0 ? 1 : 0, *world.processes[1],
                  peer == 2 ? 1 : 2);
    world.leave();
    CHECK(world.all([](Process& p) { return p.faults.empty() && p.lines.empty(); }));
  }
}

TEST_CASE(
    "a latecomer begins with those that are there; a partner that is away for longer comes back to "
    "it") {
  World world(3);
  world.bears = true;
  for (int each : {0, 1, 2}) world.add({each}, kTriangle);
  world.join();
  world.kill(*world.processes[2]);
  world.kill(*world.processes[1]);
  Process& zero = *world.processes[0];
  Row early(10);
  zero.on_back = [&] { zero.network->link(0, 1).send(early.chunk(0, 1, 4)); };
  Process& one = world.again(1, kTriangle);
  CHECK(one.network->late());
  CHECK(one.network->connected(1, 0));
  CHECK_FALSE(one.network->connected(1, 2));
  CHECK(one.journal.empty());  // what was sent to it while it waited for peer 2 waits for its join
  world.run_until([&] { return one.journal == Journal{"chunk 4.0"}; });
  zero.on_back = [] {};
  one.journal.clear();
  CHECK(one.said("the network runs already; joined it without peer 2: "));
  Row row(10);
  one.network->link(1, 2).send(row.chunk(1, 2));  // to nobody
  CHECK(row.leases == 0);
  check_carries(world, one, 1, zero, 0);

  Process& two = world.again(2, kTriangle);
  CHECK(two.network->late());
  CHECK(two.network->connected(2, 0));
  CHECK(two.network->connected(2, 1));
  world.run_until([&] { return one.count("back 1-2") == 1 && zero.count("back 0-2") == 1; });
  CHECK(one.journal == Journal{"back 1-2"});
  check_carries(world, one, 1, two, 2);
  check_carries(world, two, 2, one, 1);
  CHECK(std::ranges::count_if(zero.journal,
                              [](const auto& entry) { return !entry.starts_with("chunk"); }) == 4);
  world.leave();
  CHECK(world.all([](Process& p) { return p.faults.empty(); }));
}

TEST_CASE("who joined only latecomers that did not know it is told, and does not confer") {
  const World::Pairs path = {{0, 1}, {1, 2}};
  World world(3);
  world.bears = true;
  const std::string common = world.options.rendezvous;
  world.options.rendezvous = common + "/front";  // where peer 0 looks for peer 1
  Process& zero = world.add({0}, path);
  world.options.rendezvous = common;
  Process* one = &world.add({1}, path);
  Process* two = &world.add({2}, path);
  auto front = std::make_unique<Rendezvous>(common + "/front", "run-1");
  REQUIRE(one->network->start().ok());
  REQUIRE(front->announce({1}, one->network->address()).ok());
  for (Process* process : {&zero, two}) REQUIRE(process->network->start().ok());
  world.run_until([&] { return world.all([](Process& p) { return p.network->joined(); }); });
  front.reset();
  world.kill(*one);
  world.kill(*two);
  world.run_until([&] { return zero.count("lost 0-1") == 1; });

  one = &world.add({1}, path);
  two = &world.add({2}, path);
  for (Process* process : {one, two}) REQUIRE(process->network->start().ok());
  world.run_until([&] { return two->network->joined(); });
  CHECK_FALSE(two->network->late());
  CHECK_FALSE(one->network->joined());
  two->network->begin_all_gather(conference(2));
  CHECK_FALSE(two->network->all_gathered());
  front = std::make_unique<Rendezvous>(common + "/front", "run-1");
  REQUIRE(front->announce({1}, one->network->address()).ok());
  world.run_until([&] {
    return two->network->all_gathered() && one->network->joined() && zero.count("back 0-1") == 1;
  });
  CHECK(two->network->late());
  CHECK(one->network->late());
  two->network->proceed();
  check_carries(world, *two, 2, *one, 1);
  check_carries(world, *one, 1, *two, 2);
  check_carries(world, zero, 0, *one, 1);
  world.leave();
  CHECK(world.all([](Process& p) { return p.faults.empty() && p.lines.empty(); }));
}

TEST_CASE("what somebody states to a latecomer, before it knows, is not heard") {
  World world(3);
  Process& two = world.add({2}, {{0, 2}, {1, 2}});
  REQUIRE(two.network->start().ok());
  PendingConnection fresh(world, two.network->address()), runs(world, two.network->address());
  fresh.hello(0, 2, identity(3));
  runs.say(encode_hello({HandshakeResult::accepted, 1, 2, 60'000ms, identity(3), true}));
  const auto first = fresh.hear(kFrameHeaderBytes);
  CHECK(decode_header(std::span(first).first<kFrameHeaderBytes>(), {short_run("run-1"), 2, 0})
            ->head.kind == FrameKind::running);
  FrameHeader head = data_head(0, 2, 0);
  fresh.say(frame_bytes(head, {}));
  head.kind = FrameKind::statement;
  fresh.say(frame_bytes(head, garbage())).say(frame_bytes(data_head(0, 2, 0), {}));
  world.run_until([&] { return two.memory.heads.size() == 2; });
  CHECK(two.network->late());
  CHECK(two.faults.empty());
}

TEST_CASE("a port that one peer had may be another's when the first starts again") {
  World world(3);
  const World::Pairs star = {{0, 1}, {0, 2}};
  Process &zero = world.add({0}, star), &two = world.add({2}, star);
  REQUIRE(two.network->start().ok());
  Rendezvous killed(world.folder.path(), "run-1");  // nobody took its file away
  REQUIRE(killed.announce({1}, two.network->address()).ok());
  REQUIRE(zero.network->start().ok());
  world.run_until(
      [&] { return two.said("): the peer that was called does not live at this address"); });
  Process& one = world.add({1}, star);
  REQUIRE(one.network->start().ok());
  world.run_until([&] { return world.all([](Process& p) { return p.network->joined(); }); });
  check_carries(world, zero, 0, one, 1);
  world.leave();
  CHECK(zero.faults.empty());
}

TEST_CASE(
    "an id that is started twice while the network runs waits, is told why, and disturbs nobody") {
  World world(2);
  world.bears = true;
  world.options.failure_timeout = 0.3;
  for (int each : {0, 1}) world.add({each}, {{0, 1}});
  world.join();
  Process &zero = *world.processes[0], &one = *world.processes[1];
  world.options.join_timeout = 1;
  Process& second = world.add({0}, {{0, 1}});
  const Status joined = second.network->join();
  REQUIRE_FALSE(joined.ok());
  CHECK(joined.error().kind == ErrorKind::join_timeout);
  CHECK(joined.error().message.find("): peer 0 is there already, ") != std::string::npos);
  check_carries(world, zero, 0, one, 1);
  check_carries(world, one, 1, zero, 0);
  const auto lines_of = [&](const std::string& begin) {
    return std::ranges::count_if(one.lines,
                                 [&](const std::string& line) { return line.starts_with(begin); });
  };
  CHECK(lines_of("a peer 0 calls, although the one that is connected lives: ") == 1);
  // A call that was given up, as this thread was held up for longer than the silence, is told of
  // too.
  CHECK(lines_of("closed a connection from ") == std::ssize(one.lines) - 1);
  // Its file in the folder was written over; whoever looks for peer 0 finds the one that runs.
  const Rendezvous folder(world.folder.path(), "run-1");
  world.run_until([&] {
    const auto found = folder.find(0);
    return found.ok() && *found == zero.network->address();
  });
  second.network->leave();
  world.processes.pop_back();
  world.leave();
  CHECK(one.count("lost 1-0") == 0);
  CHECK(world.all([](Process& p) { return p.faults.empty(); }));
}

TEST_CASE(
    "a partner that was started again with another configuration is refused, and nobody ends but "
    "it") {
  World world(2);
  world.bears = true;
  Process& zero = world.add({0}, {{0, 1}});
  world.add({1}, {{0, 1}});
  world.join();
  world.kill(*world.processes[1]);
  Identity other = identity(2);
  other.model = "cnn 1111";
  Process& wrong = world.add({1}, {{0, 1}}, other);
  REQUIRE(wrong.network->start().ok());
  world.run_until([&] {
    return wrong.faults.size() == 1;
  });  // it need not wait for its partners to find that out
  CHECK(wrong.faults[0].kind == ErrorKind::rejected);
  CHECK(wrong.faults[0].message ==
        "peer 0 of a network that runs already calls: its model is mlp 0102, ours is cnn 1111");
  world.run_until([&] { return !zero.lines.empty(); });
  CHECK(zero.said(" refused us: its model is cnn 1111, ours is mlp 0102"));
  world.kill(wrong);
  Process& right = world.again(1, {{0, 1}});
  world.run_until([&] { return zero.count("back 0-1") == 1; });
  check_carries(world, zero, 0, right, 1);
  world.leave();
  CHECK(zero.lines.size() == 1);
  CHECK(zero.faults.empty());
}

TEST_CASE("a latecomer that does not come to its end takes nobody with it") {
  World world(3);
  world.bears = true;
  for (int each : {0, 1, 2}) world.add({each}, kTriangle);
  world.join();
  world.kill(*world.processes[2]);
  world.kill(*world.processes[1]);
  Process& zero = *world.processes[0];
  world.options.join_timeout = 0.3;  // less than a latecomer waits for its other partners
  Process& one = world.add({1}, kTriangle);
  const Status joined = one.network->join();
  REQUIRE_FALSE(joined.ok());
  CHECK(joined.error().kind == ErrorKind::join_timeout);
  CHECK(one.network->late());
  world.run_until([&] { return zero.count("lost 0-1") == zero.count("back 0-1") + 1; });
  world.kill(one);
  world.options.join_timeout = 20;
  check_carries(world, zero, 0, world.again(1, kTriangle), 1);
  CHECK(zero.faults.empty());
}
