// The inputs of a handshake: addresses, options, hellos.
#include "net/wire/hello.hpp"

#include <algorithm>

#include "tests/net/test_util.hpp"

using namespace gossamer;
using namespace gossamer::net;
using namespace gossamer::net::words;

namespace {

std::string refusal(const NetOptions& options, int peers = 2, std::vector<int> hosted = {0}) {
  const Status status = validate(options, peers, hosted);
  return status.ok() ? "" : status.error().message;
}

}  // namespace

TEST_CASE("a process without an address listens where it may be reached") {
  NetOptions options;
  options.rendezvous = "meet";
  const auto where = [&] { return to_string(*listen_address(options, {0})); };
  CHECK(where() == "127.0.0.1:0");
  CHECK(refusal(options) == "");
  options.insecure = true;
  CHECK(where() == "0.0.0.0:0");
  options.insecure = false;
  options.key = "peer.key";
  CHECK(where() == "0.0.0.0:0");
  options.listen = "10.0.0.5:7000";
  CHECK(where() == "10.0.0.5:7000");
}

TEST_CASE("addresses as people write them") {
  for (const char* text : {"10.0.0.7:7000", "node-3.cluster:65535", "[::1]:7000", "localhost:0"}) {
    const auto address = parse_address(text);
    REQUIRE(address.ok());
    CHECK(to_string(*address) == text);
  }
  for (const char* text :
       {"", ":", "host", "host:", ":7000", "host:x", "host:65536", "host:-1", "::1:7000", "[::1]",
        "[]:1", "a b:1", "host:7000 ", "http://host:1", "[::1:7", "a\x1b[2J:1", "h\xc3\xb6st:1"})
    CHECK_MESSAGE(!parse_address(text).ok(), text);
}

TEST_CASE("addresses that only this machine reaches, and those that stand for all of a machine") {
  for (const char* host : {"127.0.0.1", "127.8.0.1", "::1", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1",
                           "::FFFF:7f00:1", "localhost", "LOCALHOST", "LocalHost"})
    CHECK_MESSAGE(is_loopback({host, 1}), host);
  for (const char* host : {"0.0.0.0", "::", "10.0.0.7", "::ffff:10.0.0.7", "::7f00:1", "fe80::1",
                           "127.example.org", "localhost.example.org", "local"})
    CHECK_MESSAGE(!is_loopback({host, 1}), host);
  for (const char* host : {"0.0.0.0", "::", "0::0", "::ffff:0.0.0.0"})
    CHECK_MESSAGE(is_any_host({host, 1}), host);
  for (const char* host : {"127.0.0.1", "::1", "::ffff:0.0.0.1", "0.0.0.0.example.org"})
    CHECK_MESSAGE(!is_any_host({host, 1}), host);
  NetOptions options;
  options.seeds = {"LOCALHOST:7244", "[::ffff:127.0.0.1]:7344"};
  CHECK(validate_seeds(options).ok());
}

TEST_CASE("options that cannot work say why") {
  NetOptions options;
  CHECK(
      refusal(options) ==
      "net.peers: give the addresses of the 2 peers, or a folder in net.rendezvous, or the address "
      "of one process in net.seeds, or an address of each in net.members");
  options.peers = {"127.0.0.1:1"};
  CHECK(refusal(options) == "net.peers: 1 addresses for 2 peers");
  options.peers = {"127.0.0.1:1", "nonsense"};
  CHECK(refusal(options) ==
        "net.peers[1]: 'nonsense' is no address; give host:port, as 10.0.0.7:7000 or [::1]:7000");
  options.peers = {"127.0.0.1:1", "127.0.0.1:0"};
  CHECK(refusal(options) ==
        "net.peers[1]: port 0 cannot be called; give a port, or use net.rendezvous");
  options.peers = {"127.0.0.1:1", "127.0.0.1:2"};
  CHECK(refusal(options) == "");
  CHECK(refusal(options, 2, {0, 1}) ==
        "net.peers: peers 0 and 1 are in one process but have two addresses; give them one, or set "
        "net.listen");
  options.peers = {"127.0.0.1:1", "127.0.0.1:1"};
  CHECK(refusal(options, 2, {0, 1}) == "");
  CHECK(refusal(options, 2, {1}) ==
        "net.peers: peers 1 and 0 have one address, 127.0.0.1:1, and this process hosts peer 1 "
        "only; give each process an address, or this one both ids");
  options.peers = {"10.0.0.7:1", "10.0.0.8:2"};
  const std::string exposed =
      "10.0.0.7:1 can be reached from other machines, and without keys links are neither encrypted "
      "nor authenticated: make a key for each process with gossamer keygen, or set net.insecure = "
      "true if you trust that network";
  CHECK(refusal(options) == "net.listen: " + exposed);
  options.listen = "127.0.0.1:3";
  CHECK(refusal(options) == "net.peers[0]: " + exposed);
  options.listen.clear();
  options.key = "peer.key";
  CHECK(refusal(options).starts_with("net.key: the public keys of the peers are missing"));
  options.keys = {"AAA"};
  CHECK(refusal(options) == "net.keys: 1 keys for 2 addresses in net.peers");
  options.keys = {"AAA", "BBB"};
  CHECK(refusal(options) == "");
  options.members = "members.toml";
  CHECK(refusal(options) == "net.keys: net.members gives the keys too: remove one of them");
  options.members = options.key = "";
  CHECK(refusal(options).starts_with("net.key: the peers have keys, and this process has none"));
  options.keys.clear();
  options.insecure = true;
  CHECK(refusal(options) == "");
  options.listen = "127.0.0.1:0";
  CHECK(refusal(options) ==
        "net.listen: with port 0 other processes cannot know the port: set net.rendezvous or "
        "net.seeds");
  options.rendezvous = "/tmp";
  CHECK(refusal(options) == "");
  options.rendezvous.clear();
  options.peers.clear();
  options.seeds = {"127.0.0.1:7000"};
  CHECK(refusal(options) == "");
  CHECK(net_parameters().read("net", {{"chunk_kib", std::int64_t{5000}}}).error().message ==
        "net.chunk_kib: 5000 is too large, give at most 4096 KiB");
}

TEST_CASE("a hello is read as it was written; long texts stay distinct; texts are safe to print") {
  Hello hello{HandshakeResult::wrong_model, 3, 4, 5000ms, identity(8)};
  hello.identity.topology = std::string(300, 't');
  hello.running = hello.resumes = true;
  hello.session = 0x123456789ABCDEF0;
  const auto read = decode_hello(encode_hello(hello));
  REQUIRE(read.has_value());
  CHECK(read->result == HandshakeResult::wrong_model);
  CHECK(read->from == 3);
  CHECK(read->to == 4);
  CHECK(read->failure_timeout == 5000ms);
  CHECK(read->running);
  CHECK(read->resumes);
  CHECK(read->session == 0x123456789ABCDEF0);
  CHECK(compare(hello.identity, read->identity) == HandshakeResult::accepted);
  hello.identity.topology.back() = 'u';
  CHECK(compare(hello.identity, read->identity) == HandshakeResult::wrong_topology);
  for (const char* text : {"images of 8×8", "two\nlines"}) {
    hello.identity = identity(8), hello.identity.model = text;
    const Identity theirs = decode_hello(encode_hello(hello))->identity;
    CHECK(compare(hello.identity, theirs) == HandshakeResult::accepted);
    hello.identity.model.replace(hello.identity.model.find_first_of("×\n"), 1, "\t");
    CHECK(compare(hello.identity, theirs) == HandshakeResult::wrong_model);
  }
  hello.identity = identity(8);

  auto bytes = encode_hello(hello);
  std::fill(bytes.begin() + 40, bytes.begin() + 296, std::byte{27});
  CHECK(decode_hello(bytes)->identity.run_id == std::string(63, '?'));
  bytes[0] ^= std::byte{1};
  CHECK_FALSE(decode_hello(bytes).has_value());
  CHECK_FALSE(
      decode_hello(encode_hello({HandshakeResult::accepted, 3, 4, 5000ms, identity(8)}))->running);
  CHECK_FALSE(decode_hello_prefix(std::span(bytes).first<kHelloPrefixBytes>()).has_value());
}

TEST_CASE("settings travel with a hello, bounded and printable, and a difference is named") {
  Hello hello{HandshakeResult::accepted, 3, 4, 5000ms, identity(8)};
  hello.identity.settings = "optimizer.rate=0.1\nrun.peers=8\nrun.seed=0\n";
  auto bytes = encode_hello(hello);
  CHECK(bytes.size() == kHelloBytes + hello.identity.settings.size());
  CHECK(settings_bytes(std::span(bytes).first<kHelloBytes>()) == hello.identity.settings.size());
  CHECK(decode_hello(bytes)->identity.settings == hello.identity.settings);
  bytes.pop_back();
  CHECK_FALSE(decode_hello(bytes).has_value());
  CHECK_FALSE(decode_hello(std::span(bytes).first(kHelloBytes - 1)).has_value());
  bytes[kHelloBytes - 2] = std::byte{255};  // 16 MB follow
  CHECK_FALSE(settings_bytes(std::span(bytes).first<kHelloBytes>()).has_value());

  hello.identity.settings = "run.seed=\x1b[31m\n";
  CHECK(decode_hello(encode_hello(hello))->identity.settings == "run.seed=?[31m\n");
  hello.identity.settings.assign(kMaxSettingsBytes + 1, 'x');
  CHECK(encode_hello(hello).size() == kHelloBytes);

  const std::string ours = "optimizer.rate=0.01\nrun.peers=8\nrun.seed=0\n";
  CHECK(first_difference("optimizer.rate=0.1\nrun.peers=8\nrun.seed=0\n", ours) ==
        "optimizer.rate is 0.1 there and 0.01 here");
  CHECK(first_difference("run.peers=\nrun.seed=0\n", ours) ==
        "run.peers is empty there and 8 here, and 1 more differ");
  CHECK(first_difference("run.peers=8\nrun.seed=0\n", ours) ==
        "optimizer.rate is not set there and 0.01 here");
  CHECK(first_difference(ours, ours).empty());
  CHECK(first_difference("data.class_names=[?,?]\n", "data.class_names=[\xC3\xA9]\n") ==
        "data.class_names is [?,?] there and [??] here");
  hello.identity.settings = "data.class_names=[\xC3\xA9]\n";
  CHECK(first_difference(decode_hello(encode_hello(hello))->identity.settings,
                         hello.identity.settings)
            .empty());
  CHECK(first_difference("", ours).empty());
  CHECK(first_difference(std::string(5000, '\n') + "=\n==\nrun", ours).size() < 300);
  CHECK(first_difference("a=" + std::string(5000, 'x'), ours).size() < 300);
}
