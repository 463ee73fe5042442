// Joining: processes that are rejected with a reason, missing peers, and connections that send
// noise.
#include <algorithm>
#include <fstream>
#include <regex>

#include "tests/net/test_util.hpp"

using namespace gossamer;
using namespace gossamer::net;
using namespace gossamer::net::words;

namespace {

/// Peer 0 runs `theirs` and connects to peer 1. Checks the error of its join() and the line that
/// peer 1 reports.
void check_refused(const Identity& theirs, const std::string& their_words,
                   const std::string& our_words) {
  World world(2);
  Process& listener = world.add({1}, {{0, 1}});
  Process& caller = world.add({0}, {{0, 1}}, theirs);
  REQUIRE(listener.network->start().ok());
  const Status status = caller.network->join();
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().kind == ErrorKind::rejected);
  CHECK(status.error().message == "peer 1 at " + to_string(listener.network->address()) +
                                      " rejected this peer: " + their_words +
                                      " (every machine needs the same file; the other process "
                                      "prints a setting that differs)");
  CHECK(listener.said("rejected peer 0 (127.0.0.1:"));
  CHECK(listener.said("): " + our_words));
  CHECK_FALSE(listener.network->joined());
}

}  // namespace

TEST_CASE("a process of another run is rejected, and both ends report the difference") {
  Identity other = identity(2);
  other.topology = "torus 91cd";
  check_refused(other, "its topology is not ours, torus 91cd",
                "its topology is torus 91cd, ours is ring 77ab");
  other = identity(2);
  other.model = "cnn 1111";
  check_refused(other, "its model is not ours, cnn 1111",
                "its model is cnn 1111, ours is mlp 0102");
  other = identity(2);
  other.configuration = "conf 66bb";
  check_refused(other, "its shared configuration is not ours, conf 66bb",
                "its shared configuration is conf 66bb, ours is conf 55aa");
  other = identity(2);
  other.peers = 3;
  check_refused(other, "its number of peers is not ours, 3", "its number of peers is 3, ours is 2");
}

TEST_CASE("the acceptor answers other implementations with typed results") {
  World world(4);
  Process& one = world.add({1}, {{0, 1}, {1, 3}});
  REQUIRE(one.network->start().ok());
  const Address address = one.network->address();
  auto verdict = [&](int from, int to, const Identity& who) {
    RawClient caller(world, address);
    return caller.ask(from, to, who).result;
  };
  Identity other = identity(4);
  other.run_id = "run-2";
  CHECK(verdict(0, 1, other) == HandshakeResult::wrong_run);
  CHECK(verdict(4, 1, identity(4)) == HandshakeResult::unknown_id);
  CHECK(verdict(-1, 1, identity(4)) == HandshakeResult::unknown_id);
  CHECK(verdict(0, 2, identity(4)) == HandshakeResult::not_hosted);
  CHECK(verdict(2, 1, identity(4)) == HandshakeResult::not_a_partner);
  CHECK(verdict(1, 1, identity(4)) == HandshakeResult::duplicate_id);

  // Another protocol version is rejected by the 8 bytes that all versions share.
  RawClient future(world, address);
  other.protocol = kProtocolVersion + 1;
  future.send(encode_hello({HandshakeResult::accepted, 0, 1, 5000ms, other}));
  const auto answer = future.receive(kHelloPrefixBytes);
  const auto prefix = decode_hello_prefix(std::span(answer).first<kHelloPrefixBytes>());
  REQUIRE(prefix.has_value());
  CHECK(prefix->version == kProtocolVersion);
  CHECK(prefix->result == HandshakeResult::wrong_version);
  CHECK(one.said(fmt::format("its protocol version is {}, ours is {}", kProtocolVersion + 1,
                             kProtocolVersion)));

  RawClient peer(world, address);
  peer.hello(0, 1, identity(4));
  CHECK(verdict(0, 1, identity(4)) == HandshakeResult::duplicate_id);  // the network has not begun
  CHECK_FALSE(one.network->joined());
  CHECK(one.said("the id is taken: a peer 0 is connected already"));
  CHECK(one.faults.empty());
}

TEST_CASE("an id that is taken ends the second process, not the first one") {
  World world(3);
  const World::Pairs path = {{0, 1}, {1, 2}};
  Process& one = world.add({1}, path);
  Process& first = world.add({0}, path);
  REQUIRE(one.network->start().ok());
  REQUIRE(first.network->start().ok());
  world.run_until([&] { return first.network->joined(); });  // peer 2 is still missing
  Process& second = world.add({0}, path);
  const Status status = second.network->join();
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().kind == ErrorKind::rejected);
  CHECK(status.error().message.ends_with(
      "rejected this peer: the id is taken: a peer 0 is connected already"));
  CHECK(one.faults.empty());
  second.network->leave();
  world.processes.pop_back();
  world.add({2}, path);
  REQUIRE(world.processes.back()->network->start().ok());
  world.run_until([&] { return one.network->joined(); });
  world.leave();
}

TEST_CASE("join() ends at its timeout with the missing peers and the reasons") {
  World world(4);
  Address nobody;  // a port that was free a moment ago
  {
    auto listener = listen(world.scheduler, {"127.0.0.1", 0}, [](auto) {});
    nobody = listener.value()->address();
  }
  world.options.peers = {"127.0.0.1:1", "127.0.0.1:2", to_string(nobody), "127.0.0.1:4"};
  world.options.listen = "127.0.0.1:0";
  world.options.join_timeout = 0.2;
  SUBCASE("of its own setting") {}
  SUBCASE("of another setting, which it names") { world.words.join_limit = "net.failure_timeout"; }
  Process& one = world.add({1}, {{0, 1}, {1, 2}, {1, 3}});
  std::filesystem::create_directories(world.folder.path());
  const Status status = one.network->join();
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().kind == ErrorKind::join_timeout);
  const std::string& message = status.error().message;
  CHECK(
      message.starts_with(fmt::format("after 0.2 s ({}) peer 1 misses ", world.words.join_limit)));
  CHECK(message.find("peer 0 (127.0.0.1:1): has not connected yet") != std::string::npos);
  // Tries and seconds, which vary on a busy machine: "4 tries in 0 s".
  const std::string refused = "peer 2 (" + to_string(nobody) + "): connection refused, ";
  REQUIRE(message.find(refused) != std::string::npos);
  const std::string tried = message.substr(message.find(refused) + refused.size());
  CHECK(std::regex_search(tried, std::regex("^[1-9][0-9]* (try|tries) in [0-9]+ s")));
  one.network->leave();
}

TEST_CASE("with a rendezvous folder, the missing file is named") {
  World world(2);
  world.options.join_timeout = 0.1;
  Process& zero = world.add({0}, {{0, 1}});
  const Status status = zero.network->join();
  CHECK(status.error().message.ends_with("peer 1: " + world.folder.path() +
                                         "/peer-1.addr is not there yet"));
}

TEST_CASE("processes that wait for the same missing peer stop together") {
  World world(3);
  world.options.join_timeout = 0.2;
  Process& zero = world.add({0}, {{0, 1}, {0, 2}, {1, 2}});
  world.options.join_timeout = 20;
  Process& one = world.add({1}, {{0, 1}, {0, 2}, {1, 2}});
  REQUIRE(one.network->start().ok());
  const Status status = zero.network->join();
  CHECK(status.error().kind == ErrorKind::join_timeout);
  world.run_until([&] { return !one.faults.empty(); });
  CHECK(one.faults[0].kind == ErrorKind::join_timeout);
  CHECK(one.faults[0].message == status.error().message);
}

TEST_CASE("a peer that disconnects before its first frame may connect again") {
  World world(3);
  Process& one = world.add({1}, {{0, 1}, {1, 2}});
  REQUIRE(one.network->start().ok());
  {
    RawClient first(world, one.network->address());
    first.hello(0, 1, identity(3));
  }
  world.run_until([&] {
    return RawClient(world, one.network->address()).ask(0, 1, identity(3)).result ==
           HandshakeResult::accepted;
  });
  CHECK(one.faults.empty());
}

TEST_CASE("a port in use is an error that names it") {
  World world(2);
  auto holder = listen(world.scheduler, {"127.0.0.1", 0}, [](auto) {});
  world.options.listen = to_string(holder.value()->address());
  Process& zero = world.add({0}, {{0, 1}});
  const Status status = zero.network->join();
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().kind == ErrorKind::network);
  CHECK(status.error().message.starts_with("cannot listen on " + world.options.listen +
                                           ": address already in use; "));
}

TEST_CASE("an address of another machine is an error that names it") {
  World world(2);
  world.options.listen = "192.0.2.1:7000";  // reserved for documentation
  world.options.insecure = true;
  Process& zero = world.add({0}, {{0, 1}});
  const Status status = zero.network->join();
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().message.starts_with("cannot listen on 192.0.2.1:7000: "));
}

TEST_CASE("a process without keys that other machines can reach says so") {
  World world(2);
  world.options.insecure = true;
  for (const bool everywhere : {true, false}) {
    world.options.listen = everywhere ? "0.0.0.0:0" : "127.0.0.1:0";
    Process& process = world.add({everywhere ? 0 : 1}, {{0, 1}});
    REQUIRE(process.network->start().ok());
    CHECK(process.said("warning: links are not encrypted, and 0.0.0.0:") == everywhere);
  }
}

TEST_CASE(
    "pending connections with garbage, silence, half a hello, or in large number are closed") {
  World world(2);
  world.options.failure_timeout = 0.3;
  Process& one = world.add({1}, {{0, 1}});
  REQUIRE(one.network->start().ok());
  const Address address = one.network->address();

  RawClient browser(world, address);
  browser.send("GET / HTTP/1.1\r\n\r\n");
  world.run_until([&] { return one.said("it does not speak this protocol"); });
  RawClient half(world, address);
  const auto hello = encode_hello({HandshakeResult::accepted, 0, 1, 0ms, identity(2)});
  half.send(std::span(hello).first(100));
  half.close();
  world.run_until([&] { return one.said("the connection was closed before its hello"); });
  RawClient(world, address).close();  // counted, not reported
  world.run_until([&] { return one.network->refused().handshakes == 3; });
  RawClient mute(world, address);
  world.run_until([&] { return one.said("it sent no hello"); });
  CHECK(one.said("closed a connection from 127.0.0.1:"));

  std::vector<std::unique_ptr<RawClient>> crowd;
  for (int i = 0; i < 100; ++i) crowd.push_back(std::make_unique<RawClient>(world, address));
  Process& zero = world.add({0}, {{0, 1}});
  REQUIRE(zero.network->start().ok());
  world.run_until([&] { return zero.network->joined() && one.network->joined(); });
  CHECK(one.faults.empty());
  CHECK(one.lines.size() <= 22);
  world.leave();
}

TEST_CASE("files of the rendezvous folder that have no address of a peer are refused by name") {
  World world(2);
  const Rendezvous folder(world.folder.path(), "run-1");
  const std::string path = world.folder.path() + "/peer-1.addr";
  const auto answer = [&](const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
    const auto found = folder.find(1);
    return found.ok() ? to_string(*found) : found.error().message;
  };
  CHECK(answer("host:7000\nrun-1\n") == "host:7000");
  CHECK(answer("host:0\nrun-1\n") == path + " has an address without a port");
  CHECK(answer("host:7000\nrun-1") == path + " is not there yet");
  CHECK(answer("").find("is not there yet") != std::string::npos);
  CHECK(answer("ho\x1bst:7000\nrun-1\n").find("is no address") != std::string::npos);
}

TEST_CASE("addresses of other runs in the rendezvous folder are ignored") {
  World world(2);
  {
    Rendezvous old(world.folder.path(), "run-0");
    REQUIRE(old.announce({1}, {"127.0.0.1", 1}).ok());
    CHECK(
        Rendezvous(world.folder.path(), "run-1").find(1).error().message ==
        world.folder.path() +
            "/peer-1.addr belongs to another run: is the configuration the same on both machines?");
    Rendezvous older(world.folder.path(), "run-0", "optimizer.rate=0.1\x1b\nrun.seed=3\n");
    REQUIRE(older.announce({1}, {"127.0.0.1", 1}).ok());
    CHECK(Rendezvous(world.folder.path(), "run-1", "optimizer.rate=0.01\nrun.seed=3\n")
              .find(1)
              .error()
              .message == world.folder.path() +
                              "/peer-1.addr belongs to another run: "
                              "optimizer.rate is 0.1? there and 0.01 here");
    world.add({0}, {{0, 1}});
    world.add({1}, {{0, 1}});
    world.join();
  }
  CHECK(Rendezvous(world.folder.path(), "run-1")
            .find(1)
            .ok());  // the old one removed only its own file
  world.leave();
  world.processes.clear();
  CHECK(std::filesystem::is_empty(world.folder.path()));
}

TEST_CASE("IPv6 addresses work") {
  World world(2);
  world.options.listen = "[::1]:0";
  if (!listen(world.scheduler, {"::1", 0}, [](auto) {}).ok()) return;  // this machine has no IPv6
  world.add({0}, {{0, 1}});
  world.add({1}, {{0, 1}});
  world.join();
  world.leave();
}

TEST_CASE("an interrupt at one process while all wait ends the wait of all with an error") {
  World world(3);
  Process& zero = world.add({0}, {{0, 1}, {1, 2}});
  Process& one = world.add({1}, {{0, 1}, {1, 2}});
  REQUIRE(one.network->start().ok());
  REQUIRE(zero.network->start().ok());
  world.run_until([&] { return zero.network->joined(); });
  zero.network->abort({ErrorKind::interrupted, "peer 0 was interrupted by its operator"});
  const Status status = one.network->join();
  CHECK(status.error().kind == ErrorKind::interrupted);
  CHECK(status.error().message == "peer 0 was interrupted by its operator");
}
