// Processes that find each other from the address of one, and claim ids; strangers and members who
// send address books.
#include <algorithm>
#include <set>
#include <thread>

#include "net/run/id_claim.hpp"
#include "tests/net/test_util.hpp"

using namespace gossamer;
using namespace gossamer::net;
using namespace gossamer::net::words;

namespace {

/// A network whose processes know the address of the first one alone.
struct SeededWorld : World {
  explicit SeededWorld(int peers, bool with_keys = false) : World(peers) {
    if (with_keys)
      for (int peer = 0; peer < peers; ++peer) keys.push_back(KeyPair::generate());
    tolerates_loss = true;
    options.rendezvous.clear();
    options.listen = "127.0.0.1:0";
    options.seeds = {"127.0.0.1:1"};  // where nobody listens: the first process is the seed
  }

  Process& start(int peer, const Pairs& pairs = kTriangle) {
    return start(peer, pairs, identity(3));
  }
  Process& start(int peer, const Pairs& pairs, Identity who) {
    Process& process = add({peer}, pairs, std::move(who));
    REQUIRE(process.network->start().ok());
    if (processes.size() == 1) options.seeds = {to_string(process.network->address())};
    return process;
  }
  void join_all() {
    run_until([this] { return all([](Process& p) { return p.network->joined(); }); });
  }
};

AddressRecord record_at(int peer, const Address& address) {
  AddressRecord record;
  record.peer = peer;
  record.process = 7;
  record.version = 1;
  record.address = address;
  record.settled = true;
  return record;
}

}  // namespace

TEST_CASE("processes find each other from the address of one") {
  for (const bool with_keys : {false, true}) {
    SeededWorld world(3, with_keys);
    for (const int peer : {1, 0, 2}) world.start(peer);
    world.join_all();
    check_carries(world, *world.processes[1], 0, *world.processes[2], 2);
    check_carries(world, *world.processes[2], 2, *world.processes[0], 1);
    world.leave();
    CHECK(world.all([](Process& p) { return p.faults.empty() && p.lines.empty(); }));
  }
}

TEST_CASE("a process that is restarted elsewhere is found again, the first seed too") {
  for (const bool with_keys : {false, true}) {
    SeededWorld world(3, with_keys);
    for (const int peer : {0, 1, 2}) world.start(peer);
    world.join_all();
    world.options.seeds = {to_string(world.processes[1]->network->address())};
    world.kill(*world.processes[0]);
    world.run_until([&] { return world.all([](Process& p) { return !p.journal.empty(); }); });
    Process& again = world.start(0);
    world.run_until([&] { return again.network->joined(); });
    CHECK(again.network->late());
    for (const std::size_t other : {0u, 1u})
      world.run_until([&] { return world.processes[other]->journal.size() == 2; });
    check_carries(world, again, 0, *world.processes[1], 2);
    check_carries(world, *world.processes[0], 1, again, 0);
    world.leave();
  }
}

TEST_CASE("where a network has seeds and a folder, either may say where a peer is") {
  SeededWorld world(3);
  world.start(1);
  world.start(2);
  world.options.rendezvous = world.folder.path();  // which the first two do not know
  world.start(0);                                  // connects to both
  world.join_all();
  world.leave();
}

TEST_CASE("a process waits for a seed that starts later, and names what it tried") {
  SeededWorld world(2);
  auto place = OpenPort::open({"127.0.0.1", 0}).value();
  const Address seed = place.address();
  place = OpenPort::open({"127.0.0.1", 0}).value();  // closes the port
  world.options.seeds = {to_string(seed)};
  world.options.join_timeout = 0.3;
  Process& early = world.add({1}, {{0, 1}}, identity(2));
  const Status joined = early.network->join();
  REQUIRE_FALSE(joined.ok());
  CHECK(joined.error().kind == ErrorKind::join_timeout);
  CHECK(joined.error().message.find("peer 0") != std::string::npos);
  world.kill(early);
  world.options.join_timeout = 20;
  Process& waits = world.add({0}, {{0, 1}}, identity(2));
  REQUIRE(waits.network->start().ok());
  world.scheduler.run_until(
      [&, begun = world.scheduler.now()] { return world.scheduler.now() - begun > 100ms; });
  world.options.listen = to_string(seed);
  Process& late = world.add({1}, {{0, 1}}, identity(2));
  REQUIRE(late.network->start().ok());
  world.join_all();
  check_carries(world, waits, 0, late, 1);
  world.leave();
}

TEST_CASE(
    "the seed itself needs no option to listen at its address, and a second process takes "
    "another") {
  SeededWorld world(3);
  const Address seed = OpenPort::open({"127.0.0.1", 0}).value().address();  // free again
  world.options.listen.clear();
  world.options.seeds = {to_string(seed)};
  std::set<std::string> addresses;
  for (const int peer : {0, 1, 2}) {
    Process& process = world.add({peer}, kTriangle, identity(3));
    REQUIRE(process.network->start().ok());
    addresses.insert(to_string(process.network->address()));
  }
  CHECK(addresses.size() == 3);
  CHECK(addresses.contains(to_string(seed)));
  world.join_all();
  world.leave();
}

TEST_CASE("a process of another run is rejected by the seed, and learns no address") {
  for (const bool with_keys : {false, true}) {
    SeededWorld world(3, with_keys);
    Identity ours = identity(3);
    ours.settings = "run.peers=3\nrun.seed=0\n";
    Process& zero = world.start(0, kTriangle, ours);
    Identity other = ours;
    other.run_id = "run-2";
    other.settings = "run.peers=3\nrun.seed=5\n";
    Process& wrong = world.add({1}, kTriangle, other);
    const Status joined = wrong.network->join();
    REQUIRE_FALSE(joined.ok());
    CHECK(joined.error().kind == ErrorKind::rejected);
    CHECK(joined.error().message.find("the process at the seed 127.0.0.1:") == 0);
    // Only a process that has proved a key learns how the configurations differ.
    const bool told =
        joined.error().message.find("run.seed is 0 there and 5 here") != std::string::npos;
    CHECK(told == with_keys);
    CHECK(zero.said("its run, or its number of peers, is not ours"));
    CHECK(zero.faults.empty());
  }
}

TEST_CASE("a seed of another run does not end a process that another seed accepts") {
  for (const bool with_keys : {false, true}) {
    const World::Pairs pair{{0, 1}};
    SeededWorld world(2, with_keys);
    Identity old = identity(2);
    old.run_id = "run-0";
    const std::string outdated = to_string(world.start(0, pair, old).network->address());
    world.options.seeds = {"127.0.0.1:1"};
    Process& zero = world.start(0, pair, identity(2));
    world.options.seeds = {outdated, to_string(zero.network->address())};
    Process& one = world.start(1, pair, identity(2));
    world.run_until([&] { return one.network->joined() && zero.network->joined(); });
    CHECK(one.faults.empty());
    check_carries(world, one, 1, zero, 0);
    // It may have found the right seed first.
    CHECK((one.lines.empty() || one.said("rejected this one: its run")));
  }
}

TEST_CASE("a stranger's address book gets no answer but a rejection") {
  SeededWorld world(3);
  Process& zero = world.start(0);
  const std::string network = book_network("run-1", 3);
  const auto record = record_at(1, {"10.6.6.6", 7000});
  SUBCASE("of another network") {
    RawClient stranger(world, zero.network->address());
    stranger.send(encode_book(book_network("run-9", 3), {&record, 1}));
    CHECK(stranger.receive(kHelloPrefixBytes).size() == kHelloPrefixBytes);
    CHECK(stranger.receive(1).empty());
  }
  SUBCASE("that is longer than a network of this size can have") {
    auto bytes = encode_book(network, {});
    const std::uint32_t length = 1u << 30;
    std::memcpy(bytes.data() + 40, &length, sizeof length);
    RawClient stranger(world, zero.network->address());
    stranger.send(bytes);
    CHECK(stranger.receive(1).empty());
    CHECK(zero.said("its address book is none"));
  }
  SUBCASE("with a peer that there is not") {
    auto beyond = record;
    beyond.peer = 3;
    RawClient stranger(world, zero.network->address());
    stranger.send(encode_book(network, {&beyond, 1}));
    CHECK(stranger.receive(1).empty());
    CHECK(zero.said("its address book is none"));
  }
  SUBCASE("in a network without seeds") {
    world.options.seeds.clear();
    world.options.rendezvous = world.folder.path();
    Process& one = world.add({1}, kTriangle, identity(3));
    REQUIRE(one.network->start().ok());
    RawClient stranger(world, one.network->address());
    stranger.send(encode_book(network, {&record, 1}));
    CHECK(stranger.receive(1).empty());
    CHECK(one.said("it sent an address book, without net.seeds"));
  }
}

TEST_CASE("a member cannot say where another member is") {
  SeededWorld world(3, true);
  Process& zero = world.start(0);
  auto forged = record_at(1, {"127.0.0.1", 9});
  forged.version = 1000;
  forged.signature = world.keys[2].sign(signed_text(book_network("run-1", 3), forged));
  RawClient liar(world, zero.network->address(), client_of(world, world.keys[2]));
  liar.send(encode_book(book_network("run-1", 3), {&forged, 1}));
  const auto answer = liar.receive(kBookHeaderBytes);
  REQUIRE(answer.size() == kBookHeaderBytes);
  CHECK(decode_book_header(std::span(answer).first<kBookHeaderBytes>())->network ==
        book_network("run-1", 3));
  // The record is not there: peers 1 and 2 are found where they are.
  for (const int peer : {1, 2}) world.start(peer);
  world.join_all();
  world.leave();
}

TEST_CASE("a stranger with a key that is no member's learns nothing") {
  SeededWorld world(3, true);
  Process& zero = world.start(0);
  const KeyPair unknown = KeyPair::generate();
  RawClient stranger(world, zero.network->address(), client_of(world, unknown));
  stranger.send(encode_book(book_network("run-1", 3), {}));
  CHECK(stranger.receive(1).empty());
  world.run_until([&] { return zero.network->refused().keys == 1; });
}

TEST_CASE("processes without ids claim all of them, each another one") {
  const Address seed = OpenPort::open({"127.0.0.1", 0}).value().address();  // free again
  const int n = 5;
  std::vector<std::optional<ClaimedId>> claimed(n);
  std::vector<std::string> errors(n);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < n; ++i)
      threads.emplace_back([&, i] {
        IdClaimRequest request;
        request.options.seeds = {to_string(seed)};
        request.options.join_timeout = 30;
        request.run_id = "run-1";
        request.nodes = n;
        auto result = claim_id(request);
        if (result.ok()) claimed[i] = *std::move(result);
        else errors[i] = result.error().message;
      });
  }
  std::set<int> ids;
  std::set<std::string> addresses;
  for (std::size_t i = 0; i < n; ++i) {
    CHECK(errors[i] == "");
    if (!claimed[i]) continue;
    ids.insert(claimed[i]->peer);
    addresses.insert(to_string(claimed[i]->listening->address));
  }
  CHECK(ids == std::set{0, 1, 2, 3, 4});
  CHECK(addresses.size() == n);
  CHECK(addresses.contains(to_string(seed)));
}

TEST_CASE("a claim ends in time, and names what is missing") {
  IdClaimRequest request;
  request.options.seeds = {"127.0.0.1:1"};
  request.run_id = "run-1";
  request.nodes = 3;
  request.options.listen = "127.0.0.1:0";
  SUBCASE("at net.join_timeout") {
    request.options.join_timeout = 0.2;
    const auto claimed = claim_id(request);
    REQUIRE_FALSE(claimed.ok());
    CAPTURE(claimed.error().message);
    CHECK(claimed.error().kind == ErrorKind::join_timeout);
    CHECK(claimed.error().message.find(
              "after 0.2 s (net.join_timeout) 0 of 3 ids have a process; seeds: 127.0.0.1:1: ") ==
          0);
  }
  SUBCASE("when it is stopped") {
    request.stopped = [] { return true; };
    const auto claimed = claim_id(request);
    REQUIRE_FALSE(claimed.ok());
    CHECK(claimed.error().kind == ErrorKind::interrupted);
  }
}
