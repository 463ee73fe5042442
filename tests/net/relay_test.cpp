// Peers that cannot call each other: one end waits for the call of the other, there or at a third
// process.
#include <set>

#include "net/relay/relay.hpp"
#include "net/wire/relay_request.hpp"
#include "tests/net/test_util.hpp"

using namespace gossamer;
using namespace gossamer::net;
using namespace gossamer::net::words;

namespace {

using Kind = RelayRequest::Kind;

/// Ports on which nothing listens: the system does not give them to others soon.
std::vector<std::string> closed_ports(int count) {
  std::vector<OpenPort> ports;
  std::vector<std::string> addresses;
  for (int k = 0; k < count; ++k) {
    auto port = OpenPort::open({"127.0.0.1", 0});
    REQUIRE(port.ok());
    ports.push_back(std::move(port).value());
    addresses.push_back(to_string(ports.back().address()));
  }
  return addresses;
}

/// Processes of one peer each, of which each has its own list of addresses: of the peers that it
/// cannot call, the list has a port on which nothing listens.
struct Walled {
  using Calls = std::set<std::pair<int, int>>;  ///< (who, whom) that are possible

  Walled(int peers, Calls calls, std::vector<KeyPair> keys = {}) : world(peers), calls(calls) {
    world.tolerates_loss = true;
    world.keys = std::move(keys);
    world.options.rendezvous.clear();
    world.detour_patience = 0ns;
    open = closed_ports(peers);
    closed = closed_ports(peers);
  }

  Process& add(int peer, const World::Pairs& edges) {
    world.options.peers.clear();
    for (int other = 0; other < static_cast<int>(open.size()); ++other)
      world.options.peers.push_back(
          (calls.contains({peer, other}) ? open : closed)[static_cast<std::size_t>(other)]);
    world.options.listen = open[static_cast<std::size_t>(peer)];
    return world.add({peer}, edges);
  }

  World world;
  Calls calls;
  std::vector<std::string> open, closed;  ///< addresses by peer
};

RelayRequest request(Kind kind, int from, int to) {
  return {kind, from, to, relay_network(identity(3))};
}

/// The answer to a request; nothing while there is none.
struct Asker {
  Asker(
      World& world, const Process& process, const RelayRequest& what,
      const Wrap& wrap = [](std::unique_ptr<Socket> socket) { return socket; })
      : client(world, process.network->address(), wrap) {
    client.send(encode_relay_request(what));
  }
  HandshakeResult answer() {
    const auto bytes = client.receive(kHelloPrefixBytes);
    REQUIRE(bytes.size() == kHelloPrefixBytes);
    return decode_hello_prefix(std::span(bytes).first<kHelloPrefixBytes>())->result;
  }
  RawClient client;
};

std::vector<KeyPair> new_keys(int count) {
  std::vector<KeyPair> keys;
  for (int k = 0; k < count; ++k) keys.push_back(KeyPair::generate());
  return keys;
}

}  // namespace

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

namespace {

/// A process at the address of a peer that grants every request and then does as `then` says.
class FalseRelay {
 public:
  FalseRelay(World& world, const std::string& address, Wrap server,
             std::function<void(std::unique_ptr<Socket>)> then)
      : world_(world), server_(std::move(server)), then_(std::move(then)) {
    auto listener = listen(world.scheduler, parse_address(address).value(),
                           [this](std::unique_ptr<Socket> socket) { grant(std::move(socket)); });
    REQUIRE(listener.ok());
    listener_ = std::move(listener).value();
  }
  int granted = 0;

 private:
  void grant(std::unique_ptr<Socket> socket) {
    const auto stream = std::make_shared<HandshakeStream>(
        world_.scheduler, server_(std::move(socket)), 20s, [](const std::string&) {});
    streams_.push_back(stream);
    HandshakeStream& each = *stream;
    each.read(kRelayRequestBytes, [this, &each](std::span<const std::byte>) {
      each.write(encode_rejection(HandshakeResult::accepted), [this, &each] {
        ++granted;
        then_(each.release());
      });
    });
  }

  World& world_;
  Wrap server_;
  std::function<void(std::unique_ptr<Socket>)> then_;
  std::unique_ptr<Listener> listener_;
  std::vector<std::shared_ptr<HandshakeStream>> streams_;
};

}  // namespace

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

TEST_CASE("a relay that grants requests and connects nobody does not keep an honest one away") {
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
