#include "net/wire/relay_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/check.hpp"
#include "base/hash.hpp"

namespace gossamer::net {

namespace {

// Little-endian, as all supported machines are.
struct RelayRequestWire {
  std::array<std::byte, kHelloPrefixBytes> prefix;
  std::int32_t from, to;
  char network[32];
  std::uint32_t kind, unused;
};
static_assert(sizeof(RelayRequestWire) == kRelayRequestBytes);

}  // namespace

std::string relay_network(const Identity& identity) {
  return hash_hex(fmt::format("gossamer relay\n{}\n{}\n{}\n{}\n{}", identity.peers, identity.run_id,
                              identity.topology, identity.model, identity.configuration));
}

std::array<std::byte, kRelayRequestBytes> encode_relay_request(const RelayRequest& request) {
  RelayRequestWire wire{};
  GOSSAMER_CHECK(request.network.size() == sizeof wire.network, "a network as of relay_network()");
  wire.prefix = encode_relay_prefix();
  wire.from = request.from;
  wire.to = request.to;
  std::memcpy(wire.network, request.network.data(), sizeof wire.network);
  wire.kind = static_cast<std::uint32_t>(request.kind);
  std::array<std::byte, kRelayRequestBytes> bytes;
  std::memcpy(bytes.data(), &wire, sizeof wire);
  return bytes;
}

std::optional<RelayRequest> decode_relay_request(
    std::span<const std::byte, kRelayRequestBytes> bytes) {
  RelayRequestWire wire;
  std::memcpy(&wire, bytes.data(), sizeof wire);
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  const bool is_request = wire.prefix == encode_relay_prefix() && wire.kind <= 1 &&
                          wire.unused == 0 && wire.from >= 0 && wire.to >= 0 &&
                          wire.from != wire.to && std::ranges::all_of(wire.network, is_digit);
  if (!is_request) return std::nullopt;
  return RelayRequest{static_cast<RelayRequest::Kind>(wire.kind), wire.from, wire.to,
                      std::string(wire.network, sizeof wire.network)};
}

}  // namespace gossamer::net
