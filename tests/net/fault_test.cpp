// Faults in the middle of a run: every process stops with one error, and none hangs.
#include <signal.h>

#include <algorithm>
#include <thread>

#include "tests/net/test_util.hpp"

using namespace gossamer;
using namespace gossamer::net;
using namespace gossamer::net::words;

namespace {

/// Peer 1, joined, and a raw client in the place of peer 0.
struct Pair {
  explicit Pair(double failure_timeout = 20) : world(2) {
    world.options.failure_timeout = failure_timeout;
    one = &world.add({1}, {{0, 1}});
    REQUIRE(one->network->start().ok());
    zero = std::make_unique<RawClient>(world, one->network->address());
    zero->hello(0, 1, identity(2));
    world.run_until([&] { return one->network->joined(); });
  }
  /// The one fault that follows from the actions of the raw client.
  std::string fault() {
    world.run_until([&] { return !one->faults.empty(); });
    CHECK(one->faults.size() == 1);
    CHECK(one->faults[0].kind == ErrorKind::lost_peer);
    one->network->leave();
    return one->faults[0].message;
  }

  World world;
  Process* one;
  std::unique_ptr<RawClient> zero;
};

/// Peer 0 has sent peer 1 a row that is more than sockets and the window of the reader hold, and
/// peer 1 reads nothing more.
struct HeldReader {
  explicit HeldReader(double row_timeout = NetOptions().row_timeout) {
    world.options.row_timeout = row_timeout;
    a = &world.add({0}, {{0, 1}});
    b = &world.add({1}, {{0, 1}});
    world.join();
    b->memory.hold = true;
    for (std::size_t begin = 0; begin < row.values.size(); begin += 1 << 18)
      a->network->link(0, 1).send(row.chunk(0, 1, 0, begin, 1 << 18));
  }

  World world{2};
  Process *a, *b;
  Row row{8 << 20};
};

bool names(const std::string& message, const std::string& rest) {
  return message.starts_with("peer 0 (127.0.0.1:") && message.ends_with(") " + rest);
}

}  // namespace

TEST_CASE(
    "a connection that closes between frames or inside one fails the session with the reason") {
  Pair first;
  first.zero->send(data_frame(100, 12));
  first.world.run_until([&] { return first.one->memory.bytes == 400; });
  first.zero->close();
  CHECK(names(first.fault(), "was lost in round 12: the connection was closed"));

  Pair second;
  const auto torn = data_frame(100, 12);
  second.zero->send(std::span(torn).first(200)).close();
  CHECK(
      names(second.fault(),
            "was lost before its first round: the connection was closed in the middle of a frame"));
}

TEST_CASE("a silent peer is lost after the failure timeout") {
  Pair pair(0.3);
  const gossip::Time begin = pair.world.scheduler.now();
  const std::string message = pair.fault();
  CHECK(message.find("was lost before its first round: it sent nothing for 0.3") !=
        std::string::npos);
  CHECK(pair.world.scheduler.now() - begin < 5s);
}

TEST_CASE("heartbeats keep an idle connection alive") {
  World world(2);
  world.options.failure_timeout = 0.2;
  Process& a = world.add({0}, {{0, 1}});
  world.add({1}, {{0, 1}});
  world.join();
  bool enough = false;
  world.scheduler.after(600ms, [&] { enough = true; });
  world.run_until([&] { return enough; });
  CHECK(world.all([](Process& p) { return p.faults.empty(); }));
  CHECK(a.network->traffic(0).bytes_sent > kHelloBytes);
  CHECK(a.network->traffic(0).data_bytes_sent == 0);
  world.leave();
}

TEST_CASE("a process that was suspended counts no idle time for that period") {
  World world(2);
  world.options.failure_timeout = 0.2;
  Process &a = world.add({0}, {{0, 1}}), &b = world.add({1}, {{0, 1}});
  world.join();
  Row row(10);
  for (int time = 1; time <= 3; ++time) {
    const gossip::Time until = world.scheduler.now() + 500ms;
    while (world.scheduler.now() < until) {  // as if the process were suspended
    }
    a.network->link(0, 1).send(row.chunk(0, 1, static_cast<gossip::Round>(time)));
    world.run_until([&] { return b.memory.headers.size() == static_cast<std::size_t>(time); });
  }
  CHECK(world.all([](Process& p) { return p.faults.empty(); }));
  world.leave();
}

TEST_CASE("bytes that violate the protocol end the run with an error that names the peer") {
  auto fault_after = [](std::span<const std::byte> bytes) {
    Pair pair;
    pair.zero->send(bytes);
    return pair.fault();
  };
  CHECK(names(fault_after(data_frame(10, 0, 1)),
              "broke the protocol: it sent a frame whose checksum does not match: it was damaged "
              "on the way"));
  CHECK(names(fault_after(garbage()), "broke the protocol: it sent bytes that are no frame"));
  FrameHeader header = data_header(0, 1, 2 << 20);
  CHECK(names(fault_after(frame_bytes(header, std::vector<std::byte>((4 << 20) + 4))),
              "broke the protocol: it sent a chunk of 4194308 bytes, where 4194304 is the limit"));
  header = data_header(0, 1, 1);
  header.run = short_run("run-2");
  CHECK(names(fault_after(frame_bytes(header, std::vector<std::byte>(4))),
              "broke the protocol: it sent a frame of another run"));
  auto speaks_on = frame_bytes(frame_header(0, 1, GoodbyeFrame{}), {});
  const auto more = data_frame(1);
  speaks_on.insert(speaks_on.end(), more.begin(), more.end());
  CHECK(names(fault_after(speaks_on), "broke the protocol: it sent a frame after its goodbye"));
}

TEST_CASE("an error of the receiver ends the run") {
  Pair pair;
  pair.one->memory.refuse = "peer 0 sent round 3 again";
  pair.zero->send(data_frame(10));
  CHECK(pair.fault() == "peer 0 sent round 3 again");
}

TEST_CASE("a loss floods a path: every process stops once, with the same error") {
  World world(6);
  const World::Pairs path = {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}};
  for (int peer = 0; peer < 6; ++peer) world.add({peer}, path);
  world.join();
  Row row(1000);
  world.processes[5]->network->link(5, 4).send(row.chunk(5, 4, 12));
  world.run_until([&] { return world.processes[4]->memory.bytes > 0; });
  world.processes.pop_back();  // peer 5 dies
  world.run_until([&] { return world.all([](Process& p) { return !p.faults.empty(); }); });
  const std::string sentence = world.processes[4]->faults[0].message;
  CHECK(sentence.find("peer 5 (127.0.0.1:") == 0);
  CHECK(sentence.find(") was lost in round 12: ") != std::string::npos);
  world.leave();
  for (auto& process : world.processes) {
    CHECK(process->faults.size() == 1);
    CHECK(process->faults[0].message == sentence);
    CHECK(process->faults[0].kind == ErrorKind::lost_peer);
  }
}

TEST_CASE("an interrupt floods a ring, past rows that are not read") {
  World world(4);
  const World::Pairs ring = {{0, 1}, {1, 2}, {2, 3}, {3, 0}};
  for (int peer = 0; peer < 4; ++peer) world.add({peer}, ring);
  world.join();
  Row big(16 << 20);  // 64 MiB: more than sockets and windows hold
  for (auto& process : world.processes) process->memory.hold = true;
  for (std::size_t offset = 0; offset < big.values.size(); offset += 1 << 18)
    world.processes[1]->network->link(1, 2).send(big.chunk(1, 2, 0, offset, 1 << 18));
  world.run_until([&] { return world.processes[2]->memory.held.size() == 2; });
  world.processes[0]->network->abort(
      {ErrorKind::interrupted, "peer 0 was interrupted by its operator"});
  world.run_until([&] { return world.all([](Process& p) { return !p.faults.empty(); }); });
  world.leave();
  CHECK(big.leases == 0);
  for (auto& process : world.processes) {
    CHECK(process->faults.size() == 1);
    CHECK(process->faults[0].kind == ErrorKind::interrupted);
    CHECK(process->faults[0].message == "peer 0 was interrupted by its operator");
  }
}

TEST_CASE(
    "a receiver that keeps its buffers stalls the sender within bounds and without idle time") {
  World world(2);
  world.options.failure_timeout = 0.2;
  Process& a = world.add({0}, {{0, 1}});
  Process& b = world.add({1}, {{0, 1}});
  world.join();
  b.memory.hold = true;
  Row row(16 << 20);
  const std::size_t step = 1 << 18;
  for (std::size_t offset = 0; offset < row.values.size(); offset += step)
    a.network->link(0, 1).send(row.chunk(0, 1, 0, offset, step));
  bool enough = false;
  world.scheduler.after(700ms, [&] { enough = true; });
  world.run_until([&] { return enough; });
  CHECK(b.memory.held.size() == 2);  // net.window
  CHECK(row.leases > 8);             // most of the row waits at the sender
  CHECK(world.all([](Process& p) { return p.faults.empty(); }));
  b.memory.hold = false;
  b.memory.held.clear();
  world.run_until(
      [&] { return b.memory.bytes == row.values.size() * sizeof(float) && row.leases == 0; });
  CHECK(b.memory.received == row.values);
  world.leave();
}

TEST_CASE("a flood of small frames is delivered") {
  Pair pair;
  std::vector<std::byte> bytes;
  for (int i = 0; i < 20000; ++i) {
    const auto frame =
        frame_bytes(i % 2 == 0 ? frame_header(0, 1, HeartbeatFrame{}) : data_header(0, 1, 0), {});
    bytes.insert(bytes.end(), frame.begin(), frame.end());
  }
  pair.zero->send(bytes);
  pair.world.run_until([&] { return pair.one->memory.headers.size() == 10000; });
  CHECK(pair.one->faults.empty());
}

TEST_CASE("the last frames of a peer are read although it has closed and writes to it fail") {
  for (const bool aborts : {false, true}) {
    Pair pair;
    Process& one = *pair.one;
    one.memory.hold = true;
    for (gossip::Round round = 0; round < 3; ++round) pair.zero->send(data_frame(100, round));
    const std::string sentence = "peer 7 has diverged";
    pair.zero
        ->send(aborts ? frame_bytes(frame_header(0, 1, AbortFrame{ErrorKind::diverged}),
                                    std::as_bytes(std::span(sentence)))
                      : frame_bytes(frame_header(0, 1, GoodbyeFrame{}), {}))
        .close();
    pair.world.run_until([&] {
      return one.memory.held.size() == 2;
    });  // the third chunk and the frames behind it lie unread
    Row row(4 << 20);
    for (int i = 0; i < 4; ++i) {
      one.network->link(1, 0).send(row.chunk(1, 0, 0, 0, 1 << 20));
      pair.world.run_until([&] { return row.leases == 0; });
    }
    CHECK(one.faults.empty());
    one.memory.held.clear();
    CHECK(one.memory.headers.size() == 2);  // nothing is delivered from within the end of a lease
    pair.world.run_until([&] { return one.memory.headers.size() == 3; });
    if (aborts) {
      pair.world.run_until([&] { return !one.faults.empty(); });
      CHECK(one.faults[0].kind == ErrorKind::diverged);
      CHECK(one.faults[0].message == sentence);
    }
    pair.world.leave();
    CHECK(one.faults.size() == (aborts ? 1 : 0));
    CHECK(one.lines.size() == (aborts ? 1 : 0));
  }
}

TEST_CASE("a peer that said goodbye may close and is not lost") {
  World world(2);
  Process& a = world.add({0}, {{0, 1}});
  Process& b = world.add({1}, {{0, 1}});
  world.join();
  Row row(1 << 20);
  a.network->link(0, 1).send(row.chunk(0, 1));
  a.network->leave(50ms);  // b has not said goodbye yet
  CHECK(a.lines.size() == 1);
  CHECK(a.lines[0].find("said goodbye") != std::string::npos);
  world.run_until([&] { return b.memory.bytes == row.values.size() * sizeof(float); });
  b.network->link(1, 0).send(row.chunk(1, 0));  // to a peer that has left: dropped
  world.leave();
  CHECK(row.leases == 0);
  CHECK(b.faults.empty());
}

TEST_CASE("a process that leaves does not wait for ever for a reader that acknowledges nothing") {
  HeldReader held(0.2);
  held.a->network->leave(1ms);
  CHECK(held.a->said("has acknowledged nothing for 0.2 s"));
  CHECK(held.row.leases == 0);
}

TEST_CASE(
    "a slow reader receives all that was sent to it, although the patience of the leaving sender "
    "is short") {
  HeldReader held;
  held.world.scheduler.after(200ms, [&] {
    held.b->memory.hold = false;
    held.b->memory.held.clear();
  });
  held.a->network->leave(1ms);
  CHECK(held.row.leases == 0);
  held.world.run_until(
      [&] { return held.b->memory.bytes == held.row.values.size() * sizeof(float); });
  CHECK(held.b->faults.empty());
}

TEST_CASE("a process that dies is detected although all buffers are leased and nothing is read") {
  World world(2);
  world.tolerates_loss = true;
  world.options.failure_timeout = 0.3;
  Process &one = world.add({0}, {{0, 1}}), &other = world.add({1}, {{0, 1}});
  world.join();
  one.memory.hold = true;
  Row row(100);
  for (int i = 0; i < 2 * world.options.window; ++i)
    other.network->link(1, 0).send(row.chunk(1, 0));
  world.run_until(
      [&] { return one.memory.held.size() == static_cast<std::size_t>(world.options.window); });
  world.kill(other);
  world.run_until([&] { return one.count("lost 0-1") == 1; });
  CHECK(one.faults.empty());
}

TEST_CASE("a network that has begun is whole: a join_timeout of one process does not end it") {
  for (const ErrorKind kind : {ErrorKind::join_timeout, ErrorKind::rejected}) {
    const World::Pairs triangle = {{0, 1}, {0, 2}, {1, 2}};
    World world(3);
    world.tolerates_loss = true;
    for (int each : {0, 1, 2}) world.add({each}, triangle);
    world.join();
    world.all_gather();
    for (auto& process : world.processes) process->network->release_chunks();
    world.processes[1]->network->abort({kind, "peer 1 waited in vain"});
    Process &zero = *world.processes[0], &two = *world.processes[2];
    world.run_until([&] { return zero.count("lost 0-1") + two.count("lost 2-1") == 2; });
    CHECK(zero.faults.empty());
    CHECK(two.faults.empty());
    world.kill(*world.processes[1]);
    Row row(10);
    zero.network->link(0, 2).send(row.chunk(0, 2));
    world.run_until([&] { return two.memory.headers.size() == 1; });
  }
}

TEST_CASE("control messages that wait for a peer that does not read are bounded") {
  Pair pair;
  gossip::Link& link = pair.one->network->link(1, 0);
  for (int i = 0; i <= 1 << 16; ++i)
    link.send(gossip::Chunk({1, 0, 3, 0, 0, 7, gossip::ControlMessage::link_lost}, {}, {}));
  CHECK(
      names(pair.fault(), "was lost: it does not accept 65537 control messages that wait for it"));
}
