// Coming together: who is refused and told why, who is missing, and who only makes noise at the
// door.
#include <algorithm>
#include <regex>

#include "tests/net/test_util.hpp"

using namespace gossamer;
using namespace gossamer::net;
using namespace gossamer::net::words;

namespace {

/// Peer 0 runs `theirs` and calls peer 1: what join() tells it, and whether peer 1 says the same
/// from its side.
void check_refused(const Identity& theirs, const std::string& their_words,
                   const std::string& our_words) {
  World world(2);
  Process& listener = world.add({1}, {{0, 1}});
  Process& caller = world.add({0}, {{0, 1}}, theirs);
  REQUIRE(listener.network->start().ok());
  const Status status = caller.network->join();
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().kind == ErrorKind::rejected);
  CHECK(status.error().message ==
        "peer 1 at " + to_string(listener.network->address()) + " refused us: " + their_words);
  CHECK(listener.said("refused peer 0 (127.0.0.1:"));
  CHECK(listener.said("): " + our_words));
  CHECK_FALSE(listener.network->joined());
}

}  // namespace

TEST_CASE("whoever runs something else is refused, and both sides say what differs") {
  Identity other = identity(2);
  other.topology = "torus 91cd";
  check_refused(other, "its topology is ring 77ab, ours is torus 91cd",
                "its topology is torus 91cd, ours is ring 77ab");
  other = identity(2);
  other.model = "cnn 1111";
  check_refused(other, "its model is mlp 0102, ours is cnn 1111",
                "its model is cnn 1111, ours is mlp 0102");
  other = identity(2);
  other.configuration = "conf 66bb";
  const std::string advice = " (every machine needs the same file: compare their resolved-*.toml)";
  check_refused(other, "its shared configuration is conf 55aa, ours is conf 66bb" + advice,
                "its shared configuration is conf 66bb, ours is conf 55aa" + advice);
  other = identity(2);
  other.peers = 3;
  check_refused(other, "its number of peers is 2, ours is 3",
                "its number of peers is 3, ours is 2");
}

TEST_CASE("a listener's words to callers that are not our own code") {
  World world(4);
  Process& one = world.add({1}, {{0, 1}, {1, 3}});
  REQUIRE(one.network->start().ok());
  const Address address = one.network->address();
  auto verdict = [&](int from, int to, const Identity& who) {
    PendingConnection caller(world, address);
    return caller.ask(from, to, who).verdict;
  };
  Identity other = identity(4);
  other.run_id = "run-2";
  CHECK(verdict(0, 1, other) == HandshakeResult::wrong_run);
  CHECK(verdict(4, 1, identity(4)) == HandshakeResult::unknown_id);
  CHECK(verdict(-1, 1, identity(4)) == HandshakeResult::unknown_id);
  CHECK(verdict(0, 2, identity(4)) == HandshakeResult::not_hosted);
  CHECK(verdict(2, 1, identity(4)) == HandshakeResult::not_a_partner);
  CHECK(verdict(1, 1, identity(4)) == HandshakeResult::duplicate_id);

  // Another protocol version is refused by the 8 bytes that all versions share.
  PendingConnection future(world, address);
  other.protocol = 9;
  future.say(encode_hello({HandshakeResult::accepted, 0, 1, 5000ms, other}));
  const auto answer = future.hear(kHelloPrefixBytes);
  const auto prefix = decode_hello_prefix(std::span(answer).first<kHelloPrefixBytes>());
  REQUIRE(prefix.has_value());
  CHECK(prefix->version == kProtocolVersion);
  CHECK(prefix->verdict == HandshakeResult::wrong_version);
  CHECK(one.said(fmt::format("its protocol version is 9, ours is {}", kProtocolVersion)));

  PendingConnection peer(world, address);
  peer.hello(0, 1, identity(4));
  CHECK(verdict(0, 1, identity(4)) == HandshakeResult::duplicate_id);  // the network has not begun
  CHECK_FALSE(one.network->joined());
  CHECK(one.said("the id is taken: a peer 0 is connected already"));
  CHECK(one.faults.empty());
}

TEST_CASE("an id that is taken ends the second process, not the first") {
  World world(3);
  const World::Pairs path = {{0, 1}, {1, 2}};
  Process& one = world.add({1}, path);
  Process& first = world.add({0}, path);
  REQUIRE(one.network->start().ok());
  REQUIRE(first.network->start().ok());
  world.run_until([&] { return first.network->joined(); });  // peer 2 is still to come
  Process& second = world.add({0}, path);
  const Status status = second.network->join();
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().kind == ErrorKind::rejected);
  CHECK(status.error().message.ends_with(
      "refused us: the id is taken: a peer 0 is connected already"));
  CHECK(one.faults.empty());
  second.network->leave();
  world.processes.pop_back();
  world.add({2}, path);
  REQUIRE(world.processes.back()->network->start().ok());
  world.run_until([&] { return one.network->joined(); });
  world.leave();
}

TEST_CASE("who is missing is named, with why, and the wait ends") {
  World world(4);
  Address nobody;  // a port that was free a moment ago
  {
    auto listener = listen(world.scheduler, {"127.0.0.1", 0}, [](auto) {});
    nobody = listener.value()->address();
  }
  world.options.peers = {"127.0.0.1:1", "127.0.0.1:2", to_string(nobody), "127.0.0.1:4"};
  world.options.listen = "127.0.0.1:0";
  world.options.join_timeout = 0.2;
  Process& one = world.add({1}, {{0, 1}, {1, 2}, {1, 3}});
  std::filesystem::create_directories(world.folder.path());
  const Status status = one.network->join();
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().kind == ErrorKind::join_timeout);
  const std::string& message = status.error().message;
  CHECK(message.find("after 0.2 s (net.join_timeout) peer 1 misses ") == 0);
  CHECK(message.find("peer 0 (127.0.0.1:1): has not called yet") != std::string::npos);
  // How many and how long, as a held-up thread may have it: "4 tries in 0 s".
  const std::string refused = "peer 2 (" + to_string(nobody) + "): connection refused, ";
  REQUIRE(message.find(refused) != std::string::npos);
  const std::string tried = message.substr(message.find(refused) + refused.size());
  CHECK(std::regex_search(tried, std::regex("^[1-9][0-9]* (try|tries) in [0-9]+ s")));
  one.network->leave();
}

TEST_CASE("with a folder, a missing peer's file is named") {
  World world(2);
  world.options.join_timeout = 0.1;
  Process& zero = world.add({0}, {{0, 1}});
  const Status status = zero.network->join();
  CHECK(status.error().message.ends_with("peer 1: " + world.folder.path() +
                                         "/peer-1.addr is not there yet"));
}

TEST_CASE("those who wait with us for the same peer stop with us") {
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

TEST_CASE("a peer that goes away before it said anything may come again") {
  World world(3);
  Process& one = world.add({1}, {{0, 1}, {1, 2}});
  REQUIRE(one.network->start().ok());
  {
    PendingConnection first(world, one.network->address());
    first.hello(0, 1, identity(3));
  }
  world.run_until([&] {
    PendingConnection second(world, one.network->address());
    second.say(encode_hello({HandshakeResult::accepted, 0, 1, 60'000ms, identity(3)}));
    const auto answer = second.hear(kHelloBytes);
    return answer.size() == kHelloBytes &&
           decode_hello(std::span(answer).first<kHelloBytes>())->verdict ==
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

TEST_CASE("an address that is not this machine's is an error that names it") {
  World world(2);
  world.options.listen = "192.0.2.1:7000";  // reserved for documentation
  world.options.insecure = true;
  Process& zero = world.add({0}, {{0, 1}});
  const Status status = zero.network->join();
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().message.starts_with("cannot listen on 192.0.2.1:7000: "));
  CHECK(zero.said("warning: links are not encrypted"));
}

TEST_CASE("strangers at the door: garbage, silence, half a hello, a crowd") {
  World world(2);
  world.options.failure_timeout = 0.3;
  Process& one = world.add({1}, {{0, 1}});
  REQUIRE(one.network->start().ok());
  const Address address = one.network->address();

  PendingConnection browser(world, address);
  browser.say("GET / HTTP/1.1\r\n\r\n");
  world.run_until([&] { return one.said("it does not speak our protocol"); });
  PendingConnection half(world, address);
  const auto hello = encode_hello({HandshakeResult::accepted, 0, 1, 0ms, identity(2)});
  half.say(std::span(hello).first(100));
  half.close();
  world.run_until([&] { return one.said("the connection was closed before its hello"); });
  PendingConnection mute(world, address);
  world.run_until([&] { return one.said("it said no hello"); });
  CHECK(one.said("closed a connection from 127.0.0.1:"));

  std::vector<std::unique_ptr<PendingConnection>> crowd;
  for (int i = 0; i < 100; ++i)
    crowd.push_back(std::make_unique<PendingConnection>(world, address));
  Process& zero = world.add({0}, {{0, 1}});
  REQUIRE(zero.network->start().ok());
  world.run_until([&] { return zero.network->joined() && one.network->joined(); });
  CHECK(one.faults.empty());
  CHECK(one.lines.size() <= 22);
  world.leave();
}

TEST_CASE("what a folder keeps of other runs is not called") {
  World world(2);
  {
    Rendezvous old(world.folder.path(), "run-0");
    REQUIRE(old.announce({1}, {"127.0.0.1", 1}).ok());
    CHECK(Rendezvous(world.folder.path(), "run-1").find(1).error().message ==
          world.folder.path() +
              "/peer-1.addr is of another run: is the configuration the same on both?");
    world.add({0}, {{0, 1}});
    world.add({1}, {{0, 1}});
    world.join();
  }
  CHECK(Rendezvous(world.folder.path(), "run-1")
            .find(1)
            .ok());  // the old one took away only what was its own
  world.leave();
  world.processes.clear();
  CHECK(std::filesystem::is_empty(world.folder.path()));
}

TEST_CASE("IPv6") {
  World world(2);
  world.options.listen = "[::1]:0";
  if (!listen(world.scheduler, {"::1", 0}, [](auto) {}).ok()) return;  // a machine without it
  world.add({0}, {{0, 1}});
  world.add({1}, {{0, 1}});
  world.join();
  world.leave();
}

TEST_CASE("an interrupt at one peer while all wait ends the wait of all, in words") {
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
