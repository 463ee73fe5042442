// Lost links are restored; connections that must be rejected, and sessions that must end,
// meanwhile.
#include <algorithm>

#include "net/io/back_off.hpp"
#include "tests/net/proxy.hpp"

using namespace gossamer;
using namespace gossamer::net;
using namespace gossamer::net::words;

namespace {

/// Peer 1 of a network of two that runs and tolerates losses, and raw clients in the place of peer
/// 0.
struct Host {
  explicit Host(double row_timeout = 1800) : world(2) {
    world.tolerates_loss = true;
    world.options.row_timeout = row_timeout;
    one = &world.add({1}, {{0, 1}});
    REQUIRE(one->network->start().ok());
  }
  std::unique_ptr<RawClient> client() {
    return std::make_unique<RawClient>(world, one->network->address());
  }
  /// Connects as peer 0 until it is admitted.
  std::unique_ptr<RawClient> admitted() {
    std::unique_ptr<RawClient> caller;
    world.run_until([&] {
      caller = client();
      return caller->ask(0, 1, identity(2)).result == HandshakeResult::accepted;
    });
    return caller;
  }

  World world;
  Process* one;
};

std::vector<std::byte> frame(const FrameBody& body) {
  return frame_bytes(frame_header(0, 1, body), {});
}

}  // namespace

TEST_CASE("a lost link is restored at both ends, and carries from the beginning of a message on") {
  Cuttable pair;
  World& world = pair.world;
  pair.one->memory.hold = true;  // so that the row is cut in the middle
  Row old(4 << 20), fresh(1000);
  const std::size_t step = 1 << 18;
  for (std::size_t begin = 0; begin + step < old.values.size(); begin += step)
    pair.zero->network->link(0, 1).send(old.chunk(0, 1, 5, begin, step));
  world.run_until([&] { return pair.one->memory.held.size() == 2; });
  pair.proxy->shut();
  world.run_until([&] { return pair.zero->count("lost 0-1") == 1; });
  CHECK(old.leases == 0);  // the queue of the lost session is empty
  CHECK_FALSE(pair.zero->network->connected(0, 1));
  pair.zero->network->link(0, 1).send(fresh.chunk(0, 1, 6));  // the link is lost
  CHECK(fresh.leases == 0);
  pair.one->memory.hold = false;
  pair.one->memory.held.clear();
  world.run_until([&] { return pair.one->count("lost 1-0") == 1; });
  pair.proxy->open();
  world.run_until([&] { return pair.both_restored(1); });
  CHECK(pair.zero->journal == Journal{"lost 0-1", "restored 0-1"});
  CHECK(pair.zero->network->connected(0, 1));

  // The rest of a message that began on the old connection, on its channel; then a whole message on
  // the same channel and one on another.
  gossip::Link& link = pair.zero->network->link(0, 1);
  link.send(old.chunk(0, 1, 5, old.values.size() - step));
  gossip::Chunk other = fresh.chunk(0, 1, 7, 0, 400);
  other.header.channel = 3;
  link.send(std::move(other));
  link.send(old.chunk(0, 1, 5, old.values.size() - 10));
  link.send(fresh.chunk(0, 1, 8, 0, 400));
  link.send(fresh.chunk(0, 1, 8, 400));
  world.run_until([&] { return pair.one->count("chunk 8.400") == 1; });
  const auto back = std::ranges::find(pair.one->journal, "restored 1-0");
  CHECK(Journal(back - 1, pair.one->journal.end()) ==
        Journal{"lost 1-0", "restored 1-0", "chunk 7.0", "chunk 8.0", "chunk 8.400"});
  // The chunks of the old row came before that, in order.
  std::uint64_t expected = 0;
  for (std::size_t i = 0; i + 3 < pair.one->memory.headers.size(); ++i, expected += step)
    CHECK(pair.one->memory.headers[i].offset == expected);
  check_carries(world, *pair.one, 1, *pair.zero, 0);
  CHECK(old.leases == 0);
  // The same for a message that began on the second connection.
  link.send(fresh.chunk(0, 1, 9, 0, 400));
  world.run_until([&] { return pair.one->count("chunk 9.0") == 1; });
  pair.lose_link(2);
  world.run_until([&] { return pair.both_restored(2); });
  link.send(fresh.chunk(0, 1, 9, 400));
  check_carries(world, *pair.zero, 0, *pair.one, 1);
  CHECK(pair.one->count("chunk 9.400") == 0);
  world.run_until([&] { return fresh.leases == 0; });
  world.leave();
  CHECK(world.all([](Process& p) { return p.faults.empty() && p.lines.empty(); }));
}

TEST_CASE("fifty losses leave no buffer, lease or connection behind") {
  Row there(300'000), back(300'000);
  int most = 0;
  {
    Cuttable pair;
    for (long i = 1; i <= 50; ++i) {
      pair.zero->network->link(0, 1).send(there.chunk(0, 1));
      pair.one->network->link(1, 0).send(back.chunk(1, 0));
      pair.zero->memory.hold = pair.one->memory.hold =
          i % 2 == 0;  // a chunk may outlive its connection
      if (i % 3 != 0) pair.world.run_until([&] { return !pair.one->memory.headers.empty(); });
      pair.lose_link(i);
      pair.world.run_until([&] { return pair.both_restored(i); });
      CHECK(pair.zero->count("lost 0-1") == i);
      CHECK(pair.one->count("lost 1-0") == i);
      CHECK(there.leases == 0);
      CHECK(back.leases == 0);
      for (Process* process : {pair.zero, pair.one}) {
        process->memory.held.clear();
        process->memory.headers.clear();
      }
      most = std::max(most, pair.world.buffers);
    }
    CHECK(most <= 2 * 2);  // net.window of the one session of each end
    pair.zero->memory.hold = pair.one->memory.hold = false;
    check_carries(pair.world, *pair.zero, 0, *pair.one, 1);
    check_carries(pair.world, *pair.one, 1, *pair.zero, 0);
    pair.world.leave();
    CHECK(pair.world.all([](Process& p) { return p.faults.empty() && p.lines.empty(); }));
    pair.world.processes.clear();
    CHECK(pair.world.buffers == 0);
  }
}

TEST_CASE("leave() does not wait for lost links") {
  for (const bool aborts : {false, true}) {
    World world(3);
    world.tolerates_loss = true;
    for (int each : {0, 1, 2}) world.add({each}, kTriangle);
    world.join();
    world.kill(*world.processes[1]);  // peer 0 connects to it, peer 2 waits for it
    Process &zero = *world.processes[0], &two = *world.processes[1];
    world.run_until([&] { return zero.count("lost 0-1") == 1 && two.count("lost 2-1") == 1; });
    if (aborts) {
      zero.network->abort({ErrorKind::interrupted, "peer 0 was interrupted by its operator"});
      world.run_until([&] { return two.count("lost 2-0") == 1; });
    }
    world.leave();
    CHECK(zero.faults.size() == (aborts ? 1 : 0));
    CHECK(two.faults.empty());
    CHECK(zero.lines.empty());
  }
}

TEST_CASE("a process that is leaving answers retry_later") {
  Host host;
  {
    const auto first = host.admitted();
    host.world.run_until([&] { return host.one->network->joined(); });
  }
  host.world.run_until([&] { return host.one->count("lost 1-0") == 1; });
  const auto mute = host.admitted();  // it may be no peer: leave() does not wait for it
  host.one->network->begin_leave();
  CHECK(host.one->network->left());
  CHECK(host.client()->ask(0, 1, identity(2)).result == HandshakeResult::retry_later);
  CHECK(host.one->count("restored 1-0") == 0);
}

TEST_CASE("no link is restored after a goodbye") {
  Host host;
  const auto first = host.admitted();
  host.world.run_until([&] { return host.one->network->joined(); });
  first->send(frame(GoodbyeFrame{})).close();
  host.world.run_until(
      [&] { return host.client()->ask(0, 1, identity(2)).result == HandshakeResult::retry_later; });
  CHECK(host.one->leaves == std::vector<std::string>{"1-0"});
  CHECK_FALSE(host.one->network->connected(1, 0));
  CHECK(host.one->journal.empty());
  CHECK(host.one->faults.empty());
}

TEST_CASE(
    "half a frame of a lost connection is forgotten, and a link is restored by its first frame") {
  Host host;
  World& world = host.world;
  Process& one = *host.one;
  auto zero = host.admitted();
  world.run_until([&] { return one.network->joined(); });
  const auto torn = data_frame(100'000, 3);
  zero->send(std::span(torn).first(200'000)).close();
  world.run_until([&] { return one.count("lost 1-0") == 1; });

  // Connections that were abandoned while they waited in a queue: they are answered, and closed.
  for (int i = 0; i < 3; ++i) host.admitted()->close();
  host.admitted()->send(frame(AbortFrame{ErrorKind{0}})).close();
  world.run_until([&] {
    zero = host.client();
    const Hello answer = zero->ask(0, 1, identity(2));
    CHECK(answer.running);
    return answer.result == HandshakeResult::accepted;
  });
  Row row(10);
  one.network->link(1, 0).send(row.chunk(1, 0));
  CHECK(row.leases == 0);  // the link is not restored yet
  CHECK_FALSE(one.network->connected(1, 0));
  CHECK(one.journal == Journal{"lost 1-0"});
  CHECK(host.client()->ask(0, 1, identity(2)).result == HandshakeResult::still_connected);
  zero->send(data_frame(5, 8));
  world.run_until([&] { return one.memory.headers.size() == 1; });
  CHECK(one.journal == Journal{"lost 1-0", "restored 1-0", "chunk 8.0"});
  CHECK(one.memory.received == std::vector<float>{0, 1, 2, 3, 4});
  CHECK(one.network->connected(1, 0));
  one.network->link(1, 0).send(row.chunk(1, 0, 9));
  // Its frames: first that it runs, then the row, perhaps with an acknowledgement between.
  const auto next_frame = [&] {
    const auto bytes = zero->receive(kFrameHeaderBytes);
    return decode_header(std::span(bytes).first<kFrameHeaderBytes>(), {short_run("run-1"), 1, 0})
        ->header;
  };
  CHECK(next_frame().kind() == FrameKind::running);
  FrameHeader next = next_frame();
  if (next.kind() == FrameKind::ack) {
    CHECK(std::get<AckFrame>(next.body).received == 1);
    next = next_frame();
  }
  REQUIRE(next.data() != nullptr);
  CHECK(next.data()->round == 9);
  zero->close();
  world.run_until([&] { return one.count("lost 1-0") == 2; });
  one.network->leave();
  world.processes.clear();
  CHECK(world.buffers == 0);
}

TEST_CASE("a peer that violated the protocol is admitted again after a pause") {
  Host host;
  auto zero = host.admitted();
  host.world.run_until([&] { return host.one->network->joined(); });
  const gossip::Time begin = host.world.scheduler.now();
  zero->send(data_frame(10, 0, 1));
  host.world.run_until([&] { return host.one->count("lost 1-0") == 1; });
  CHECK(host.client()->ask(0, 1, identity(2)).result == HandshakeResult::retry_later);
  zero = host.admitted();
  CHECK(host.world.scheduler.now() - begin >= BackOff::kLongest);
  zero->send(frame(HeartbeatFrame{}));
  host.world.run_until([&] { return host.one->count("restored 1-0") == 1; });
  CHECK(host.one->faults.empty());
}

TEST_CASE("a peer whose rows are overdue is admitted again after the row timeout, then later") {
  Host host(0.3);
  auto zero = host.admitted();
  host.world.run_until([&] { return host.one->network->joined(); });
  for (const gossip::Time bar : {300ms, 600ms}) {
    const gossip::Time begin = host.world.scheduler.now();
    const auto losses = host.one->count("lost 1-0");
    std::string reason;
    host.one->on_lost = [&](int, const Error& why) { reason = why.message; };
    host.one->network->end_link(1, 0, Network::Blame::overdue,
                                {ErrorKind::lost_peer, "peer 0 is overdue"});
    host.world.run_until([&] { return host.one->count("lost 1-0") == losses + 1; });
    CHECK(reason == "peer 0 is overdue");
    CHECK(host.client()->ask(0, 1, identity(2)).result == HandshakeResult::retry_later);
    zero = host.admitted();
    CHECK(host.world.scheduler.now() - begin >= bar);
    zero->send(frame(HeartbeatFrame{}));
    host.world.run_until([&] { return host.one->count("restored 1-0") == losses + 1; });
    host.one->on_lost = [](int, const Error&) {};
  }
  CHECK(host.one->faults.empty());
}

TEST_CASE("the connecting end pauses after a protocol violation") {
  Cuttable pair;
  pair.zero->memory.refuse = "peer 1 sent round 3 again";
  Row row(10);
  const gossip::Time begin = pair.world.scheduler.now();
  pair.one->network->link(1, 0).send(row.chunk(1, 0));
  pair.world.run_until([&] { return pair.zero->count("lost 0-1") == 1; });
  pair.zero->memory.refuse.clear();
  pair.world.run_until([&] { return pair.both_restored(1); });
  CHECK(pair.world.scheduler.now() - begin >= BackOff::kLongest);
  check_carries(pair.world, *pair.one, 1, *pair.zero, 0);
}

TEST_CASE("noise on pending connections of a running network changes nothing") {
  World world(3);
  world.tolerates_loss = true;
  const World::Pairs path = {{0, 1}, {1, 2}};
  for (int each : {0, 1, 2}) world.add({each}, path);
  world.join();
  Process& one = *world.processes[1];
  const Address address = one.network->address();
  std::vector<std::unique_ptr<RawClient>> crowd;
  for (int i = 0; i < 80; ++i) crowd.push_back(std::make_unique<RawClient>(world, address));
  Identity other = identity(3);
  other.run_id = "run-2";
  CHECK(RawClient(world, address).ask(0, 1, other).result == HandshakeResult::wrong_run);
  CHECK(RawClient(world, address).ask(7, 1, identity(3)).result == HandshakeResult::unknown_id);
  CHECK(RawClient(world, address).ask(2, 1, identity(3)).result ==
        HandshakeResult::not_a_partner);  // peer 1 connects to that peer
  RawClient(world, address).send(garbage());
  const auto hello = encode_hello({HandshakeResult::accepted, 0, 1, 0ms, identity(3)});
  RawClient(world, address).send(std::span(hello).first(100)).close();
  check_carries(world, *world.processes[0], 0, one, 1);
  check_carries(world, one, 1, *world.processes[2], 2);
  world.kill(*world.processes[0]);
  Process& zero = world.again(0, path);
  check_carries(world, zero, 0, one, 1);
  CHECK(one.journal.size() == 2 + 2 + 2);
  world.leave();
  CHECK(world.all([](Process& p) { return p.faults.empty(); }));
}
