// What a process answers to a request to relay, from honest peers and from others.
#include "tests/net/relay_test_util.hpp"

using namespace gossamer;
using namespace gossamer::net;
using namespace gossamer::net::words;

TEST_CASE(
    "a request to a relay is read as it was written, and no changed byte of its head passes") {
  for (const Kind kind : {Kind::wait, Kind::call}) {
    const auto bytes = encode_relay_request(request(kind, 7, 3));
    CHECK(decode_relay_request(bytes) == request(kind, 7, 3));
    for (const std::size_t at : {0, 4, 6, 48, 51, 52, 55}) {
      auto changed = bytes;
      changed[at] ^= std::byte{0x80};
      CHECK_FALSE(decode_relay_request(changed).has_value());
    }
  }
  CHECK_FALSE(decode_relay_request(encode_relay_request(request(Kind::wait, 3, 3))).has_value());
  CHECK_FALSE(decode_relay_request(encode_relay_request(request(Kind::wait, -1, 3))).has_value());
}

TEST_CASE("a relay passes on nothing where net.relay is false") {
  Walled walled(3, {{0, 2}, {1, 2}});
  walled.world.options.reach.relay = false;
  Process& two = walled.add(2, kTriangle);
  REQUIRE(two.network->start().ok());
  for (const Kind kind : {Kind::wait, Kind::call})
    CHECK(Asker(walled.world, two, request(kind, 0, 1)).answer() ==
          HandshakeResult::relays_nothing);
}

TEST_CASE("what a relay refuses") {
  Walled walled(3, {});
  World& world = walled.world;
  Process& zero = walled.add(0, kTriangle);
  REQUIRE(zero.network->start().ok());
  const auto answer = [&](const RelayRequest& what) { return Asker(world, zero, what).answer(); };
  RelayRequest other = request(Kind::wait, 1, 2);
  for (std::string Identity::* part :
       {&Identity::run_id, &Identity::topology, &Identity::model, &Identity::configuration}) {
    Identity who = identity(3);
    who.*part += "x";
    other.network = relay_network(who);
    CHECK(answer(other) == HandshakeResult::wrong_run);
  }
  CHECK(answer(request(Kind::wait, 1, 3)) == HandshakeResult::unknown_id);
  CHECK(answer(request(Kind::wait, 3, 1)) == HandshakeResult::unknown_id);
  CHECK(answer(request(Kind::wait, 0, 1)) == HandshakeResult::unknown_id);  // its own peer
  CHECK(answer(request(Kind::call, 1, 2)) == HandshakeResult::does_not_wait);
  CHECK(answer(request(Kind::call, 1, 0)) == HandshakeResult::does_not_wait);
  // Bytes that are no request.
  auto noise = encode_relay_request(request(Kind::wait, 1, 2));
  noise[48] = std::byte{9};
  RawClient client(world, zero.network->address());
  client.send(noise);
  CHECK(client.receive(1).empty());
  CHECK(zero.said("its request to a relay is none"));
  CHECK(zero.faults.empty());
}

TEST_CASE("a process whose peer is connected, or is to accept the connection, is not called back") {
  World world(3);
  Process& zero = world.add({0}, kTriangle);
  Process& one = world.add({1}, kTriangle);
  world.add({2}, kTriangle);
  world.join();
  CHECK(Asker(world, zero, request(Kind::wait, 1, 0)).answer() == HandshakeResult::retry_later);
  CHECK(Asker(world, one, request(Kind::wait, 0, 1)).answer() == HandshakeResult::not_a_partner);
  check_carries(world, zero, 0, one, 1);
}

TEST_CASE("a peer that sends before it is called is cut off, and one that closes waits no more") {
  World world(3);
  Process& zero = world.add({0}, kTriangle);
  REQUIRE(zero.network->start().ok());
  Asker early(world, zero, request(Kind::wait, 1, 2));
  early.client.send("x");
  CHECK(early.client.receive(1).empty());
  CHECK(Asker(world, zero, request(Kind::call, 2, 1)).answer() == HandshakeResult::does_not_wait);

  auto gone = std::make_unique<Asker>(world, zero, request(Kind::wait, 1, 2));
  gone.reset();
  // The end of the connection arrives in its own time; until then the peer counts as waiting, and
  // the caller's connection is closed.
  world.run_until([&] {
    Asker caller(world, zero, request(Kind::call, 2, 1));
    const auto bytes = caller.client.receive(kHelloPrefixBytes);
    return bytes.size() == kHelloPrefixBytes &&
           decode_hello_prefix(std::span(bytes).first<kHelloPrefixBytes>())->result ==
               HandshakeResult::does_not_wait;
  });
}

TEST_CASE("a relay passes bytes on unchanged, both ways, and the end of either end") {
  World world(3);
  Process& zero = world.add({0}, kTriangle);
  REQUIRE(zero.network->start().ok());
  Asker first(world, zero, request(Kind::wait, 1, 2)),
      waits(world, zero, request(Kind::wait, 1, 2));
  CHECK(first.client.receive(1).empty());  // replaced
  auto calls = std::make_unique<Asker>(world, zero, request(Kind::call, 2, 1));
  CHECK(calls->answer() == HandshakeResult::accepted);
  CHECK(waits.answer() == HandshakeResult::accepted);
  const std::vector<std::byte> text = garbage();
  for (RawClient* from : {&calls->client, &waits.client}) {
    RawClient& to = from == &waits.client ? calls->client : waits.client;
    from->send(text);
    CHECK(to.receive(text.size()) == text);
  }
  CHECK(Asker(world, zero, request(Kind::call, 2, 1)).answer() == HandshakeResult::does_not_wait);
  calls.reset();
  CHECK(waits.client.receive(1).empty());
}

TEST_CASE("a relay has no more connections than its limit") {
  RealScheduler scheduler;
  std::optional<Relay> relay(std::in_place, scheduler, 60s);
  std::vector<std::unique_ptr<Socket>> ends;
  auto listener = listen(scheduler, Address{"127.0.0.1", 0}, [&](std::unique_ptr<Socket> socket) {
    ends.push_back(std::move(socket));
  });
  REQUIRE(listener.ok());
  std::vector<std::unique_ptr<Socket>> callers;
  const auto wait_at = [&](int from, int to) {
    const RelayRequest what = request(Kind::wait, from, to);
    if (relay->admit(what) != HandshakeResult::accepted) return false;
    const auto attempt = connect(scheduler, (*listener)->address(), [&](auto socket) {
      callers.push_back(std::move(socket).value());
    });
    const std::size_t before = ends.size(), called = callers.size();
    scheduler.run_until([&] { return ends.size() > before && callers.size() > called; });
    relay->wait(what, std::move(ends.back()));
    return true;
  };
  int waiting = 0;
  while (waiting <= static_cast<int>(Relay::kMostWaiting) && wait_at(waiting, waiting + 1))
    ++waiting;
  CHECK(waiting == static_cast<int>(Relay::kMostWaiting));
  CHECK(wait_at(0, 1));  // in place of the one before
  CHECK(relay->waiting() == Relay::kMostWaiting);

  relay.emplace(scheduler, 60s);
  waiting = 0;
  while (waiting <= static_cast<int>(Relay::kMostOfPeer) && wait_at(7, 8 + waiting)) ++waiting;
  CHECK(waiting == static_cast<int>(Relay::kMostOfPeer));
  CHECK(wait_at(6, 7));  // another peer
}

TEST_CASE("with keys, a peer waits and calls in its own name alone") {
  Walled walled(3, {}, new_keys(3));
  World& world = walled.world;
  Process& zero = walled.add(0, kTriangle);
  REQUIRE(zero.network->start().ok());
  const Wrap as_two = client_of(world, world.keys[2]);
  for (const Kind kind : {Kind::wait, Kind::call})
    CHECK(Asker(world, zero, request(kind, 1, 2), as_two).answer() == HandshakeResult::wrong_key);
  CHECK(zero.said("is not that of peer 1"));
  // A stranger's key gets no answer at all.
  RawClient stranger(world, zero.network->address(), client_of(world, KeyPair::generate()));
  stranger.send(encode_relay_request(request(Kind::wait, 1, 2)));
  CHECK(stranger.receive(1).empty());
  world.run_until([&] { return zero.network->refused().keys == 3; });
}
