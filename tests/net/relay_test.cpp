// Peers that cannot call each other: one end waits for the call of the other, there or at a third
// process.
#include "tests/net/relay_test_util.hpp"

using namespace gossamer;
using namespace gossamer::net;
using namespace gossamer::net::words;

TEST_CASE("an end that cannot be called calls the other one, and the session begins over that") {
  for (const bool encrypted : {false, true}) {
    CAPTURE(encrypted);
    // Peer 0 is the one to connect, and reaches no peer.
    Walled walled(2, {{1, 0}}, encrypted ? new_keys(2) : std::vector<KeyPair>());
    Process& zero = walled.add(0, {{0, 1}});
    Process& one = walled.add(1, {{0, 1}});
    walled.world.join();
    CHECK(zero.network->links().front().route.way == Route::Way::reversed);
    CHECK(one.network->links().front().route.way == Route::Way::reversed);
    check_carries(walled.world, zero, 0, one, 1);
    check_carries(walled.world, one, 1, zero, 0);
    walled.world.leave();
  }
}

TEST_CASE("ends that cannot call each other are connected through a third process") {
  for (const bool encrypted : {false, true}) {
    CAPTURE(encrypted);
    Walled walled(3, {{0, 2}, {1, 2}}, encrypted ? new_keys(3) : std::vector<KeyPair>());
    Process& zero = walled.add(0, kTriangle);
    Process& one = walled.add(1, kTriangle);
    walled.add(2, kTriangle);
    walled.world.join();
    for (const Process* process : {&zero, &one}) {
      const LinkReport link = process->network->links().front();
      CHECK(link.route == Route{Route::Way::relayed, 2});
      CHECK(process->said("is connected through peer 2"));
    }
    check_carries(walled.world, zero, 0, one, 1);
    check_carries(walled.world, one, 1, zero, 0);
    walled.world.leave();
  }
}

TEST_CASE("a relay that dies is replaced by another one, and no frame is lost") {
  const World::Pairs edges = {{0, 1}};
  Walled walled(4, {{0, 2}, {1, 2}, {0, 3}, {1, 3}});
  Process& zero = walled.add(0, edges);
  Process& one = walled.add(1, edges);
  std::map<int, Process*> relays;
  for (const int relay : {2, 3}) relays[relay] = &walled.add(relay, edges);
  walled.world.join();
  const auto route = [](const Process& process) { return process.network->links().front().route; };
  for (int death = 0; death < 3; ++death) {
    const int first = route(zero).relay;
    REQUIRE(relays.contains(first));
    // A row is on its way when the relay dies.
    Row row(500'000, 3);
    one.memory.received.clear();
    const std::size_t chunks = one.memory.headers.size();
    zero.network->link(0, 1).send(row.chunk(0, 1, static_cast<gossip::Round>(death)));
    walled.world.kill(*relays.at(first));
    walled.world.run_until(
        [&] { return one.memory.headers.size() == chunks + 1 && row.leases == 0; });
    CHECK(one.memory.received == row.values);
    CHECK(route(zero).relay == 5 - first);
    CHECK(route(one).relay == 5 - first);
    relays[first] = &walled.add(first, edges);
    REQUIRE(relays[first]->network->start().ok());
  }
  CHECK(zero.journal == Journal{});
  CHECK(zero.faults.empty());
}

TEST_CASE("a relay that has finished goes on while pairs are connected through it") {
  enum class Ends { pair_ends, is_stopped, patience };
  for (const Ends ends : {Ends::pair_ends, Ends::is_stopped, Ends::patience}) {
    Walled walled(3, {{0, 2}, {1, 2}});
    World& world = walled.world;
    Process& zero = walled.add(0, {{0, 1}});
    Process& one = walled.add(1, {{0, 1}});
    Process& relay = walled.add(2, {{0, 1}});
    world.join();
    relay.network->leave(0s);
    check_carries(world, zero, 0, one, 1);
    CHECK(zero.faults.empty());
    world.scheduler.after(0s, [&] {
      if (ends == Ends::is_stopped) relay.network->abort({ErrorKind::interrupted, "stopped"});
      if (ends != Ends::pair_ends) return;
      world.kill(zero);
      world.kill(one);
    });
    std::vector<std::size_t> pairs;
    const auto note = [&](std::size_t count) { pairs.push_back(count); };
    relay.network->relay_on(ends == Ends::patience ? gossip::Time(1ms) : gossip::Time(600s), note);
    CHECK(pairs == std::vector<std::size_t>{1});
    if (ends != Ends::pair_ends) continue;
    relay.network->relay_on(600s, note);  // there is nothing to wait for
    CHECK(pairs.size() == 1);
  }
}

TEST_CASE("a session outlives a break that only the end which cannot be called can mend") {
  Walled walled(2, {{0, 1}});
  World& world = walled.world;
  Process& one = walled.add(1, {{0, 1}});
  Proxy proxy(world, parse_address(walled.open[1]).value());
  walled.open[1] = to_string(proxy.address());
  Process& zero = walled.add(0, {{0, 1}});
  world.join();
  for (int cut = 0; cut < 3; ++cut) {
    proxy.cut();  // nothing listens where peer 1 would call peer 0
    check_carries(world, zero, 0, one, 1);
    check_carries(world, one, 1, zero, 0);
  }
  for (const Process* each : {&zero, &one}) {
    CHECK(each->count("lost 0-1") + each->count("lost 1-0") == 0);
    CHECK(each->network->links().front().route.is_direct());
  }
}

TEST_CASE(
    "a session whose relay grants requests and connects no peers is resumed through another") {
  Walled walled(4, {{0, 2}, {1, 2}, {0, 3}, {1, 3}});
  World& world = walled.world;
  world.options.failure_timeout = 2;
  Process& zero = walled.add(0, {{0, 1}});
  Process& one = walled.add(1, {{0, 1}});
  std::map<int, Process*> relays;
  for (const int relay : {2, 3}) relays[relay] = &walled.add(relay, {{0, 1}});
  world.join();
  const int first = zero.network->links().front().route.relay;
  world.kill(*relays.at(first));
  std::vector<std::unique_ptr<Socket>> held;
  FalseRelay liar(
      world, walled.open[static_cast<std::size_t>(first)],
      [](std::unique_ptr<Socket> socket) { return socket; },
      [&](std::unique_ptr<Socket> socket) { held.push_back(std::move(socket)); });
  check_carries(world, zero, 0, one, 1);
  CHECK(zero.network->links().front().route.relay == 5 - first);
  CHECK(zero.journal.size() + one.journal.size() == 2);  // the chunks
}

TEST_CASE("with keys, a relay that answers in place of the peer does not become it") {
  Walled walled(3, {{0, 2}}, new_keys(3));
  World& world = walled.world;
  // Peer 2 says that peer 1 waits, and speaks for it with its own key.
  const auto context = std::make_shared<TlsContext>(world.keys[2]);
  const Wrap server = [&](std::unique_ptr<Socket> socket) {
    return encrypted(world.scheduler, std::move(socket), *context, TlsRole::server,
                     [](const PublicKey&) { return true; });
  };
  std::vector<std::shared_ptr<HandshakeStream>> streams;
  FalseRelay relay(world, walled.open[2], server, [&](std::unique_ptr<Socket> socket) {
    streams.push_back(std::make_shared<HandshakeStream>(world.scheduler, server(std::move(socket)),
                                                        20s, [](const std::string&) {}));
    streams.back()->read(1, [](std::span<const std::byte>) { FAIL("a hello came"); });
  });
  world.options.join_timeout = 1;
  const Status joined = walled.add(0, {{0, 1}}).network->join();
  CHECK(relay.granted > 0);
  REQUIRE_FALSE(joined.ok());
  CHECK(joined.error().kind == ErrorKind::join_timeout);
  CHECK(joined.error().message.find("is not that of peer 1") != std::string::npos);
}

TEST_CASE("a relay that grants requests and connects no peers does not keep an honest one away") {
  Walled walled(4, {{0, 2}, {1, 2}, {0, 3}, {1, 3}});
  World& world = walled.world;
  world.options.failure_timeout = 0.5;
  for (const int liar : {2, 3}) {
    CAPTURE(liar);
    std::vector<std::unique_ptr<Socket>> held;
    FalseRelay relay(
        world, walled.open[static_cast<std::size_t>(liar)],
        [](std::unique_ptr<Socket> socket) { return socket; },
        [&](std::unique_ptr<Socket> socket) { held.push_back(std::move(socket)); });
    Process& zero = walled.add(0, {{0, 1}});
    Process& one = walled.add(1, {{0, 1}});
    walled.add(5 - liar, {{0, 1}});
    world.join();
    CHECK(zero.network->links().front().route == Route{Route::Way::relayed, 5 - liar});
    check_carries(world, zero, 0, one, 1);
    world.leave();
    while (!world.processes.empty()) world.kill(*world.processes.front());
  }
}
