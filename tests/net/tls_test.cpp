// Networks whose links are encrypted, and intruders: no key, an unknown key, another's id, recorded
// bytes, older versions, changed bytes, revoked keys, slow and half-open handshakes.
#include "net/tls/error.hpp"
#include "net/tls/openssl.hpp"
#include "net/tls/tls_socket.hpp"
#include "tests/net/proxy.hpp"

using namespace gossamer;
using namespace gossamer::net;
using namespace gossamer::net::words;

namespace {

const World::Pairs kPath = {{0, 1}, {1, 2}};

std::vector<KeyPair> make_keys(std::size_t count) {
  std::vector<KeyPair> keys;
  for (std::size_t i = 0; i < count; ++i) keys.push_back(KeyPair::generate());
  return keys;
}

/// Peers 0, 1 and 2 on a path, with keys; peers 0 and 1 run.
struct KeyedPath {
  explicit KeyedPath(double failure_timeout = 20) : world(3) {
    world.options.failure_timeout = failure_timeout;
    world.tolerates_loss = true;
    world.keys = make_keys(3);
    one = &world.add({1}, kPath);
    zero = &world.add({0}, kPath);
    for (Process* process : {one, zero}) REQUIRE(process->network->start().ok());
    world.run_until(
        [&] { return zero->network->connected(0, 1) && one->network->connected(1, 0); });
  }
  Address address() const { return one->network->address(); }

  /// The run is unharmed: peer 2 joins, and rows arrive.
  void check_unharmed() {
    Process& two = world.add({2}, kPath);
    REQUIRE(two.network->start().ok());
    world.run_until([&] { return world.all([](Process& p) { return p.network->joined(); }); });
    check_carries(world, *zero, 0, *one, 1);
    check_carries(world, two, 2, *one, 1);
    CHECK(world.all([](Process& p) { return p.faults.empty(); }));
    world.leave();
  }

  World world;
  Process *zero, *one;
};

/// An intruder that connects and writes a hello as peer 2; returns how its connection ended.
std::string intrude(KeyedPath& path, const Wrap& wrap) {
  RawClient intruder(path.world, path.address(), wrap);
  intruder.send(encode_hello({HandshakeResult::accepted, 2, 1, 60'000ms, identity(3)}));
  if (intruder.ended.empty()) CHECK(intruder.receive(kHelloPrefixBytes).empty());
  return intruder.ended;
}

/// Waits until a process has printed the text.
void wait_for_line(World& world, Process& process, const std::string& text) {
  world.run_until([&] { return process.said(text); });
}

Wrap plain() {
  return [](std::unique_ptr<Socket> socket) { return socket; };
}

}  // namespace

TEST_CASE("tls: networks with keys join, carry rows and leave") {
  World world(3);
  world.keys = make_keys(3);
  for (const int peer : {0, 1, 2}) world.add({peer}, kTriangle);
  world.join();
  world.all_gather();
  auto& processes = world.processes;
  for (auto& process : processes) process->network->release_chunks();
  check_carries(world, *processes[0], 0, *processes[1], 1);
  check_carries(world, *processes[2], 2, *processes[0], 0);
  world.leave();
  CHECK(world.all([](Process& p) { return p.lines.empty() && p.faults.empty(); }));
}

TEST_CASE("tls: an intruder without a key, or with an unknown one, is refused unread") {
  KeyedPath path;
  const KeyPair unknown = KeyPair::generate();
  SUBCASE("plain hello") {
    CHECK_FALSE(intrude(path, plain()).empty());
    wait_for_line(path.world, *path.one, "its bytes are no TLS");
    CHECK(path.one->network->refused().handshakes == 1);
  }
  SUBCASE("no certificate") {
    const auto drop = [](SSL* ssl, void*) { return SSL_certs_clear(ssl), 1; };
    CHECK(intrude(path, client_of(path.world, unknown, [drop](SSL_CTX* context) {
                    SSL_CTX_set_cert_cb(context, drop, nullptr);
                  })) == "it refuses the key of this process");
    wait_for_line(path.world, *path.one, "it proves no key");
  }
  SUBCASE("unknown key") {
    CHECK(intrude(path, client_of(path.world, unknown)) == "it refuses the key of this process");
    wait_for_line(path.world, *path.one, "closed a connection from 127.0.0.1:");
    wait_for_line(path.world, *path.one,
                  "its key " + to_string(unknown.public_key()) + " is that of no member");
    CHECK(path.one->network->refused().keys == 1);
  }
  SUBCASE("TLS 1.2") {
    CHECK_FALSE(intrude(path, client_of(path.world, path.world.keys[2],
                                        [](SSL_CTX* context) {
                                          SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
                                          SSL_CTX_set_max_proto_version(context, TLS1_2_VERSION);
                                          SSL_CTX_set1_sigalgs_list(context,
                                                                    "ed25519:ECDSA+SHA256");
                                        }))
                    .empty());
    wait_for_line(path.world, *path.one, "it offers no TLS 1.3");
  }
  SUBCASE("noise") {
    RawClient intruder(path.world, path.address());
    intruder.send(garbage());
    CHECK(intruder.receive(100).empty());
  }
  path.check_unharmed();
}

TEST_CASE("tls: a member's key with another's id is rejected, and learns the reason") {
  KeyedPath path;
  const KeyPair& two = path.world.keys[2];
  for (const bool resumes : {false, true}) {
    RawClient intruder(path.world, path.address(), client_of(path.world, two));
    Hello hello{HandshakeResult::accepted, 0, 1, 60'000ms, identity(3)};
    hello.session = 77;
    hello.resumes = resumes;
    intruder.send(encode_hello(hello));
    const auto answer = intruder.receive(kHelloBytes);
    REQUIRE(answer.size() == kHelloBytes);
    CHECK(decode_hello(answer)->result == HandshakeResult::wrong_key);
  }
  CHECK(path.one->said("rejected peer 0 (127.0.0.1:"));
  CHECK(path.one->said("its key " + to_string(two.public_key()) + " is not that of the peer"));
  CHECK(path.one->network->refused().keys == 2);
  CHECK(path.one->network->connected(1, 0));
  path.check_unharmed();
}

TEST_CASE("tls: a process at a partner's address needs the partner's key") {
  World world(2);
  world.keys = make_keys(2);
  const TlsContext stranger(KeyPair::generate());
  std::vector<std::shared_ptr<HandshakeStream>> streams;
  std::vector<std::string> ends;
  bool read = false;
  auto squatter = listen(world.scheduler, {"127.0.0.1", 0}, [&](std::unique_ptr<Socket> socket) {
    streams.push_back(std::make_shared<HandshakeStream>(
        world.scheduler,
        encrypted(world.scheduler, std::move(socket), stranger, TlsRole::server,
                  [](const PublicKey&) { return true; }),
        1h, [&ends](const std::string& why) { ends.push_back(why); }));
    streams.back()->read(1, [&read](std::span<const std::byte>) { read = true; });
  });
  Rendezvous folder(world.folder.path(), "run-1");
  REQUIRE(folder.announce({1}, squatter.value()->address()).ok());
  world.options.join_timeout = 0.5;
  Process& zero = world.add({0}, {{0, 1}});
  const Status joined = zero.network->join();
  REQUIRE_FALSE(joined.ok());
  CHECK(joined.error().kind == ErrorKind::join_timeout);
  CHECK(joined.error().message.find("which is not that of peer 1") != std::string::npos);
  CHECK_FALSE(read);
  REQUIRE_FALSE(ends.empty());
  CHECK(ends[0] == "it refuses the key of this process");
}

TEST_CASE("tls: a process whose key the others do not know ends with their reason") {
  World world(2);
  world.keys = make_keys(2);
  Process& one = world.add({1}, {{0, 1}});
  REQUIRE(one.network->start().ok());
  world.keys[0] = KeyPair::generate();
  Process& zero = world.add({0}, {{0, 1}});
  const Status joined = zero.network->join();
  REQUIRE_FALSE(joined.ok());
  CHECK(joined.error().kind == ErrorKind::rejected);
  CHECK(joined.error().message.find("it does not know the key of this process, " +
                                    to_string(world.keys[0].public_key())) != std::string::npos);
  CHECK(one.faults.empty());
}

TEST_CASE("tls: values that differ are told to a process that has proved its key") {
  World world(2);
  world.keys = make_keys(2);
  Process& one = world.add({1}, {{0, 1}});
  REQUIRE(one.network->start().ok());
  Identity other = identity(2);
  other.topology = "torus 91cd";
  Process& zero = world.add({0}, {{0, 1}}, other);
  const Status joined = zero.network->join();
  REQUIRE_FALSE(joined.ok());
  CHECK(joined.error().message.find("torus 91cd") != std::string::npos);
  CHECK(joined.error().message.find("ring 77ab") != std::string::npos);
}

TEST_CASE("tls: recorded bytes of a member are refused, whole and cut") {
  Cuttable pair(20, [](Proxy& proxy) { proxy.records = true; }, make_keys(2));
  check_carries(pair.world, *pair.zero, 0, *pair.one, 1);
  pair.proxy->cut();
  check_carries(pair.world, *pair.zero, 0, *pair.one, 1);  // resumed
  const std::uint64_t before = pair.one->network->refused().handshakes;
  std::uint64_t replays = 0;
  for (const auto& bytes : std::vector(pair.proxy->recorded)) {
    if (bytes.empty()) continue;
    for (const std::size_t length : {bytes.size(), bytes.size() / 2, std::size_t{1}}) {
      RawClient replay(pair.world, pair.one->network->address());
      replay.send(std::span(bytes).first(length)).close();
      ++replays;
      pair.world.run_until(
          [&] { return pair.one->network->refused().handshakes == before + replays; });
    }
  }
  CHECK(replays >= 6);
  check_carries(pair.world, *pair.zero, 0, *pair.one, 1);
  CHECK(pair.one->faults.empty());
  pair.world.leave();
}

TEST_CASE("tls: a byte changed on the way, anywhere and in either direction, changes no value") {
  for (const bool back : {false, true})
    for (const std::size_t place : {0, 5, 40, 150, 300, 600, 900, 1200, 1500, 3000, 7000}) {
      Cuttable pair(
          20,
          [back, place](Proxy& proxy) {
            (back ? proxy.damage_back : proxy.damage) = [place](int k) {
              return k == 0 ? place : SIZE_MAX;
            };
          },
          make_keys(2));
      for (int row = 0; row < 3; ++row) {
        check_carries(pair.world, *pair.zero, 0, *pair.one, 1);
        check_carries(pair.world, *pair.one, 1, *pair.zero, 0);
      }
      pair.world.leave();
      CHECK(pair.proxy->connections >= 2);
      CHECK(pair.zero->faults.empty());
      CHECK(pair.one->faults.empty());
    }
}

TEST_CASE("tls: a session with keys is resumed after any cut") {
  for (std::size_t at = 0; at < 12'000; at += 997) {
    Cuttable pair(
        20, [at](Proxy& proxy) { proxy.life = [at](int k) { return k == 0 ? at : SIZE_MAX; }; },
        make_keys(2));
    check_carries(pair.world, *pair.zero, 0, *pair.one, 1);
    check_carries(pair.world, *pair.one, 1, *pair.zero, 0);
    pair.world.leave();
    CHECK(pair.zero->faults.empty());
  }
}

namespace {

/// Two processes with keys that are connected, and go on if they lose each other.
struct KeyedPair {
  KeyedPair() : world(2) {
    world.tolerates_loss = true;
    world.keys = make_keys(2);
    one = &world.add({1}, {{0, 1}});
    zero = &world.add({0}, {{0, 1}});
    world.join();
  }

  World world;
  Process *one = nullptr, *zero = nullptr;
};

}  // namespace

TEST_CASE("tls: a revoked key loses its link at once, and a rotated one restores it") {
  KeyedPair pair;
  World& world = pair.world;
  Process &one = *pair.one, &zero = *pair.zero;
  const PublicKey old = world.keys[0].public_key();
  world.keys[0] = KeyPair::generate();
  one.network->set_members(world.members());
  CHECK(one.count("lost 1-0") == 1);
  CHECK_FALSE(one.network->connected(1, 0));
  // The process with the old key tries again, and is refused.
  world.run_until([&] { return one.network->refused().keys > 0; });
  CHECK(one.said("its key " + to_string(old) + " is that of no member"));
  CHECK(zero.faults.empty());
  world.run_until([&] { return zero.said("it does not know the key of this process"); });
  world.kill(zero);
  Process& again = world.again(0, {{0, 1}});
  world.run_until([&] { return one.count("restored 1-0") == 1; });
  check_carries(world, again, 0, one, 1);
  world.leave();
}

TEST_CASE("tls: while a key is rotated both keys are those of the peer") {
  KeyedPair pair;
  World& world = pair.world;
  Process &one = *pair.one, &zero = *pair.zero;
  const KeyPair next = KeyPair::generate();
  std::map<int, Member> members{{0, {{world.keys[0].public_key(), next.public_key()}}},
                                {1, {{world.keys[1].public_key()}}}};
  one.network->set_members(MemberList(members));
  CHECK(one.count("lost 1-0") == 0);
  world.kill(zero);
  world.run_until([&] { return one.count("lost 1-0") == 1; });
  world.keys[0] = next;
  Process& again = world.again(0, {{0, 1}});
  world.run_until([&] { return one.count("restored 1-0") == 1; });
  check_carries(world, again, 0, one, 1);
  world.leave();
}

TEST_CASE("tls: a process is told when its own key is no longer in the list") {
  World world(2);
  world.keys = make_keys(2);
  Process& one = world.add({1}, {{0, 1}});
  world.add({0}, {{0, 1}});
  world.join();
  world.keys[1] = KeyPair::generate();
  one.network->set_members(world.members());
  CHECK(one.said("is no longer that of peer 1: processes with this list"));
  world.leave();
}

TEST_CASE("tls: a key that has expired loses its link at once, and is refused by its name") {
  KeyedPair pair;
  World& world = pair.world;
  Process &one = *pair.one, &zero = *pair.zero;
  const PublicKey old = world.keys[0].public_key();
  const std::map<int, Member> expired{{0, {.keys = {}, .expired = {old}}},
                                      {1, {{world.keys[1].public_key()}}}};
  one.network->set_members(MemberList(expired));
  CHECK(one.count("lost 1-0") == 1);
  CHECK_FALSE(one.network->connected(1, 0));
  world.run_until([&] { return one.network->refused().keys > 0; });
  CHECK(one.said("its key " + to_string(old) + " has expired"));
  world.run_until([&] { return zero.said("it does not know the key of this process"); });
  zero.network->set_members(MemberList(expired));
  CHECK(zero.said("warning: the key of this process, " + to_string(old) +
                  ", has expired for peer 0"));
  world.leave();
}

TEST_CASE("tls: a slow handshake ends at its deadline") {
  KeyedPath path(0.5);
  // The first bytes of a ClientHello, and then nothing.
  RawClient slow(path.world, path.address());
  const std::vector<std::byte> begun{std::byte{0x16}, std::byte{3}, std::byte{1}, std::byte{0},
                                     std::byte{200}};
  slow.send(begun);
  path.world.run_until([&] { return path.one->network->refused().handshakes == 1; });
  CHECK(path.one->said("it sent no hello"));
  CHECK(slow.receive(1).empty());
  // A handshake that is complete, and no hello.
  RawClient silent(path.world, path.address(), client_of(path.world, path.world.keys[2]));
  silent.send(std::string_view("GOSh"));
  path.world.run_until([&] { return path.one->network->refused().handshakes == 2; });
  path.check_unharmed();
}

TEST_CASE("tls: a crowd of half-open handshakes keeps no member out") {
  KeyedPath path;
  std::vector<std::unique_ptr<RawClient>> crowd;
  for (int i = 0; i < 200; ++i) {
    crowd.push_back(std::make_unique<RawClient>(path.world, path.address()));
    crowd.back()->send(std::string_view("\x16\x03\x01\x00\xC8", 5));
  }
  CHECK(path.one->said("connections from this address have not finished their handshake"));
  CHECK(path.one->lines.size() <= 22);
  path.check_unharmed();
}
