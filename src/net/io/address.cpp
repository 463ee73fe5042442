#include "net/io/address.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <strings.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

namespace gossamer::net {

namespace {

constexpr std::size_t kMostHostBytes = 247;  // with a port, 255 are enough for the whole address

Error not_an_address(const std::string& text) {
  return {ErrorKind::invalid,
          fmt::format("'{}' is no address; give host:port, as 10.0.0.7:7000 or [::1]:7000", text)};
}

std::optional<in6_addr> ipv6_number(const std::string& host) {
  in6_addr number{};
  return ::inet_pton(AF_INET6, host.c_str(), &number) == 1 ? std::optional(number) : std::nullopt;
}

}  // namespace

Result<Address> parse_address(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return not_an_address(text);
  Address address;
  address.host = text.substr(0, colon);
  if (address.host.front() == '[' && address.host.back() == ']')
    address.host = address.host.substr(1, address.host.size() - 2);
  else if (address.host.find(':') !=
           std::string::npos)  // an IPv6 number without brackets: where would its port begin?
    return not_an_address(text);
  // A name is printed: whoever wrote it must not reach the terminal.
  const auto belongs_to_a_name = [](unsigned char c) { return c > ' ' && c < 127; };
  if (address.host.empty() || address.host.size() > kMostHostBytes ||
      !std::ranges::all_of(address.host, belongs_to_a_name) ||
      address.host.find_first_of("[]/") != std::string::npos)
    return not_an_address(text);

  const char* first = text.data() + colon + 1;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(first, last, address.port);
  if (error != std::errc() || end != last) return not_an_address(text);
  return address;
}

std::string to_string(const Address& address) {
  const bool brackets = address.host.find(':') != std::string::npos;
  return brackets ? fmt::format("[{}]:{}", address.host, address.port)
                  : fmt::format("{}:{}", address.host, address.port);
}

bool is_numeric(const std::string& host) {
  in_addr number{};
  return ::inet_pton(AF_INET, host.c_str(), &number) == 1 || ipv6_number(host);
}

bool is_any_host(const Address& address) {
  if (const auto number = ipv6_number(address.host))
    return IN6_IS_ADDR_UNSPECIFIED(&*number) ||
           (IN6_IS_ADDR_V4MAPPED(&*number) &&
            std::all_of(number->s6_addr + 12, number->s6_addr + 16,
                        [](auto byte) { return byte == 0; }));
  return address.host == "0.0.0.0";
}

bool is_loopback(const Address& address) {
  if (::strcasecmp(address.host.c_str(), "localhost") == 0) return true;
  if (const auto number = ipv6_number(address.host))
    return IN6_IS_ADDR_LOOPBACK(&*number) ||
           (IN6_IS_ADDR_V4MAPPED(&*number) && number->s6_addr[12] == 127);
  // "127.evil.example" is a name, not a number.
  return address.host.starts_with("127.") && std::ranges::all_of(address.host, [](unsigned char c) {
           return std::isdigit(c) != 0 || c == '.';
         });
}

}  // namespace gossamer::net
