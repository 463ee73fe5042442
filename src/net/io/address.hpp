// Network addresses as people write them: "10.0.0.7:7000", "node3:7000", "[::1]:7000".
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"

namespace gossamer::net {

struct Address {
  std::string host;        ///< a name or a number, without brackets
  std::uint16_t port = 0;  ///< 0: any free port, to listen on

  bool operator==(const Address&) const = default;
  bool is_none() const { return host.empty(); }  ///< of a process that cannot be called
};

/// Error (invalid): the text is no address; the message quotes it and gives examples.
Result<Address> parse_address(const std::string& text);
std::string to_string(const Address& address);

/// The host is an IPv4 or IPv6 number, and no name.
bool is_numeric(const std::string& host);

/// The host stands for every address of a machine: 0.0.0.0 or ::.
bool is_any_host(const Address& address);

/// Only this machine can reach the address: 127.x.x.x, ::1 or localhost, in small or capital
/// letters, and IPv6 numbers that stand for these.
bool is_loopback(const Address& address);

}  // namespace gossamer::net
