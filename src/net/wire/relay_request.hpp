// The message that a connection begins with, in place of a hello, where a peer cannot be called: it
// waits for the call of another peer, at that peer's process or at one that both reach, or calls a
// peer that waits so. docs/WIRE.md has the bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "net/wire/hello.hpp"

namespace gossamer::net {

struct RelayRequest {
  enum class Kind : std::uint32_t {
    wait = 0,  ///< `from` takes the next connection of `to` over this one
    call = 1,  ///< `from` is to be connected to `to`, which waits here
  };
  Kind kind = Kind::wait;
  int from = 0, to = 0;
  std::string network;  ///< relay_network()

  bool operator==(const RelayRequest&) const = default;
};

/// What the processes must have in common: a hash of everything that hellos compare, so that a
/// request brings no hello to a program that could not send one. 32 hexadecimal digits.
std::string relay_network(const Identity& identity);

inline constexpr std::size_t kRelayRequestBytes = 56;

std::array<std::byte, kRelayRequestBytes> encode_relay_request(const RelayRequest& request);
/// Nothing if the bytes are none of this version: another kind, the same peer at both ends, or an
/// id below 0.
std::optional<RelayRequest> decode_relay_request(
    std::span<const std::byte, kRelayRequestBytes> bytes);

}  // namespace gossamer::net
