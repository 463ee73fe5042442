// Words of the tests of relays: peers that cannot call each other, requests to relays, and
// processes that misuse them.
#pragma once

#include <set>

#include "net/relay/relay.hpp"
#include "net/wire/relay_request.hpp"
#include "tests/net/proxy.hpp"

namespace gossamer::net::words {

using Kind = RelayRequest::Kind;

/// Ports on which nothing listens: the system does not give them to others soon.
inline std::vector<std::string> closed_ports(int count) {
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
  using Calls = std::set<std::pair<int, int>>;  ///< (caller, callee) that are possible

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

inline RelayRequest request(Kind kind, int from, int to) {
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

inline std::vector<KeyPair> new_keys(int count) {
  std::vector<KeyPair> keys;
  for (int k = 0; k < count; ++k) keys.push_back(KeyPair::generate());
  return keys;
}
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

}  // namespace gossamer::net::words
