// Processes that join a network which runs already.
#include <algorithm>

#include "tests/net/test_util.hpp"

using namespace gossamer;
using namespace gossamer::net;
using namespace gossamer::net::words;

TEST_CASE("any process of a running network may end and be restarted") {
  for (int peer : {0, 1, 2}) {
    World world(3);
    world.tolerates_loss = true;
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
            Journal{fmt::format("lost {}-{}", id, peer), fmt::format("restored {}-{}", id, peer)});
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
    "a latecomer begins with the partners that are there; an absent partner is restored later") {
  World world(3);
  world.tolerates_loss = true;
  for (int each : {0, 1, 2}) world.add({each}, kTriangle);
  world.join();
  world.kill(*world.processes[2]);
  world.kill(*world.processes[1]);
  Process& zero = *world.processes[0];
  Row early(10);
  zero.on_restored = [&] { zero.network->link(0, 1).send(early.chunk(0, 1, 4)); };
  Process& one = world.again(1, kTriangle);
  CHECK(one.network->late());
  CHECK(one.network->connected(1, 0));
  CHECK_FALSE(one.network->connected(1, 2));
  CHECK(one.journal.empty());  // chunks that came while it waited for peer 2 wait for its join
  world.run_until([&] { return one.journal == Journal{"chunk 4.0"}; });
  zero.on_restored = [] {};
  one.journal.clear();
  CHECK(one.said("the network runs already; joined it without peer 2: "));
  Row row(10);
  one.network->link(1, 2).send(row.chunk(1, 2));  // the link is lost
  CHECK(row.leases == 0);
  check_carries(world, one, 1, zero, 0);

  Process& two = world.again(2, kTriangle);
  CHECK(two.network->late());
  CHECK(two.network->connected(2, 0));
  CHECK(two.network->connected(2, 1));
  world.run_until(
      [&] { return one.count("restored 1-2") == 1 && zero.count("restored 0-2") == 1; });
  CHECK(one.journal == Journal{"restored 1-2"});
  check_carries(world, one, 1, two, 2);
  check_carries(world, two, 2, one, 1);
  CHECK(std::ranges::count_if(zero.journal,
                              [](const auto& entry) { return !entry.starts_with("chunk"); }) == 4);
  world.leave();
  CHECK(world.all([](Process& p) { return p.faults.empty(); }));
}

TEST_CASE(
    "a process whose partners turn out to be latecomers is a latecomer, and takes part in no "
    "all-gather") {
  const World::Pairs path = {{0, 1}, {1, 2}};
  World world(3);
  world.tolerates_loss = true;
  const std::string common = world.options.rendezvous;
  world.options.rendezvous = common + "/front";  // where peer 0 reads the address of peer 1
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
  two->network->begin_all_gather(all_gather_of(2));
  CHECK_FALSE(two->network->all_gathered());
  front = std::make_unique<Rendezvous>(common + "/front", "run-1");
  REQUIRE(front->announce({1}, one->network->address()).ok());
  world.run_until([&] {
    return two->network->all_gathered() && one->network->joined() &&
           zero.count("restored 0-1") == 1;
  });
  CHECK(two->network->late());
  CHECK(one->network->late());
  two->network->release_chunks();
  check_carries(world, *two, 2, *one, 1);
  check_carries(world, *one, 1, *two, 2);
  check_carries(world, zero, 0, *one, 1);
  world.leave();
  CHECK(world.all([](Process& p) { return p.faults.empty() && p.lines.empty(); }));
}

TEST_CASE("until its layers are ready, a latecomer receives no chunk and no news of its links") {
  World world(3);
  world.tolerates_loss = true;
  for (int each : {0, 1, 2}) world.add({each}, kTriangle);
  world.join();
  Process& zero = *world.processes[0];
  world.kill(*world.processes[2]);
  world.receives_at_once = false;
  Row first(10);
  zero.on_restored = [&] { zero.network->link(0, 2).send(first.chunk(0, 2, 4)); };
  Process& two = world.again(2, kTriangle);
  REQUIRE(two.network->late());
  world.run_until([&] { return zero.count("restored 0-2") == 1; });
  zero.on_restored = [] {};
  world.receives_at_once = true;
  world.kill(*world.processes[1]);
  world.run_until([&] { return !two.network->connected(2, 1); });
  Process& one = world.again(1, kTriangle);
  world.run_until([&] { return two.network->connected(2, 1); });
  world.kill(one);
  world.run_until([&] { return !two.network->connected(2, 1); });
  CHECK(two.journal.empty());

  two.network->release_chunks();
  world.run_until([&] { return two.count("chunk 4.0") == 1; });
  Process& last = world.again(1, kTriangle);
  world.run_until([&] { return two.count("restored 2-1") == 1; });
  CHECK(two.journal == Journal{"chunk 4.0", "restored 2-1"});
  check_carries(world, last, 1, two, 2);
  world.leave();
  CHECK(world.all([](Process& p) { return p.faults.empty(); }));
}

TEST_CASE("a contribution that a latecomer receives is ignored") {
  World world(3);
  Process& two = world.add({2}, {{0, 2}, {1, 2}});
  REQUIRE(two.network->start().ok());
  RawClient fresh(world, two.network->address()), runs(world, two.network->address());
  fresh.hello(0, 2, identity(3));
  runs.send(encode_hello({HandshakeResult::accepted, 1, 2, 60'000ms, identity(3), true}));
  const auto first = fresh.receive(kFrameHeaderBytes);
  CHECK(decode_header(std::span(first).first<kFrameHeaderBytes>(), {short_run("run-1"), 2, 0})
            ->header.kind() == FrameKind::running);
  fresh.send(frame_bytes(data_header(0, 2, 0), {}))
      .send(frame_bytes(frame_header(0, 2, ContributionFrame{}), garbage()))
      .send(frame_bytes(data_header(0, 2, 0), {}));
  world.run_until([&] { return two.memory.headers.size() == 2; });
  CHECK(two.network->late());
  CHECK(two.faults.empty());
}

TEST_CASE("a port of one peer may belong to another one when the first is restarted") {
  World world(3);
  const World::Pairs star = {{0, 1}, {0, 2}};
  Process &zero = world.add({0}, star), &two = world.add({2}, star);
  REQUIRE(two.network->start().ok());
  Rendezvous killed(world.folder.path(), "run-1");  // its file is still there
  REQUIRE(killed.announce({1}, two.network->address()).ok());
  REQUIRE(zero.network->start().ok());
  world.run_until([&] { return two.said("): the requested peer does not live at this address"); });
  Process& one = world.add({1}, star);
  REQUIRE(one.network->start().ok());
  world.run_until([&] { return world.all([](Process& p) { return p.network->joined(); }); });
  check_carries(world, zero, 0, one, 1);
  world.leave();
  CHECK(zero.faults.empty());
}

TEST_CASE(
    "a duplicate of a peer of a running network waits, learns the reason, and disturbs no peer") {
  World world(2);
  world.tolerates_loss = true;
  world.options.failure_timeout = 0.3;
  for (int each : {0, 1}) world.add({each}, {{0, 1}});
  world.join();
  Process &zero = *world.processes[0], &one = *world.processes[1];
  world.options.join_timeout = 1;
  Process& second = world.add({0}, {{0, 1}});
  const Status joined = second.network->join();
  REQUIRE_FALSE(joined.ok());
  CHECK(joined.error().kind == ErrorKind::join_timeout);
  CHECK(joined.error().message.find("): a peer 0 is still connected, ") != std::string::npos);
  check_carries(world, zero, 0, one, 1);
  check_carries(world, one, 1, zero, 0);
  const auto lines_of = [&](const std::string& begin) {
    return std::ranges::count_if(one.lines,
                                 [&](const std::string& line) { return line.starts_with(begin); });
  };
  CHECK(lines_of("another process connects as peer 0, although the connected one is alive, ") == 1);
  // An attempt that ended because this thread was held up for longer than T is reported too.
  CHECK(lines_of("closed a connection from ") == std::ssize(one.lines) - 1);
  // Its file in the folder was replaced: the address of peer 0 is that of the process that runs.
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

TEST_CASE("a partner that is restarted with another configuration is rejected, and ends nothing") {
  World world(2);
  world.tolerates_loss = true;
  Process& zero = world.add({0}, {{0, 1}});
  world.add({1}, {{0, 1}});
  world.join();
  world.kill(*world.processes[1]);
  Identity other = identity(2);
  other.model = "cnn 1111";
  Process& wrong = world.add({1}, {{0, 1}}, other);
  REQUIRE(wrong.network->start().ok());
  world.run_until([&] { return !zero.lines.empty(); });
  CHECK(zero.said(" rejected this peer: its model is not ours, mlp 0102"));
  // What connects may be anybody: the process that is wrong says so, and waits.
  CHECK(wrong.said("its model is mlp 0102, ours is cnn 1111"));
  CHECK(wrong.faults.empty());
  CHECK_FALSE(wrong.network->joined());
  world.kill(wrong);
  Process& right = world.again(1, {{0, 1}});
  world.run_until([&] { return zero.count("restored 0-1") == 1; });
  check_carries(world, zero, 0, right, 1);
  world.leave();
  CHECK(zero.lines.size() == 1);
  CHECK(zero.faults.empty());
}

TEST_CASE("a latecomer that fails to join ends no other process") {
  World world(3);
  world.tolerates_loss = true;
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
  world.run_until([&] { return zero.count("lost 0-1") == zero.count("restored 0-1") + 1; });
  world.kill(one);
  world.options.join_timeout = 20;
  check_carries(world, zero, 0, world.again(1, kTriangle), 1);
  CHECK(zero.faults.empty());
}
