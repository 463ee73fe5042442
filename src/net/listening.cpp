#include "net/listening.hpp"

#include <optional>
#include <string>

#include "net/io/random_number.hpp"

namespace gossamer::net {

namespace {

/// A number, or the name of this machine. Other names are not resolved here, which may take long.
bool may_be_here(const std::string& host) {
  const std::string own = host_name();
  return is_numeric(host) || is_loopback({host, 0}) || host == own ||
         host.substr(0, host.find('.')) == own.substr(0, own.find('.'));
}

/// Nothing if the seed is no address of this machine, or another process has it.
std::optional<Listening> listen_at_seed(const std::string& text) {
  const auto seed = parse_address(text);
  if (!seed.ok() || !may_be_here(seed->host)) return std::nullopt;
  {
    auto port = OpenPort::open(*seed);
    if (!port.ok()) return std::nullopt;
    if (!port->is_loopback() || is_loopback(*seed))
      return Listening{std::move(port).value(), *seed, random_number()};
  }
  // The name of this machine, which Debian's /etc/hosts gives an address that no other machine
  // reaches.
  auto port = OpenPort::open({"0.0.0.0", seed->port});
  if (!port.ok()) return std::nullopt;
  return Listening{std::move(port).value(), *seed, random_number()};
}

/// With the address that it listens on.
Result<Listening> open_own(const NetOptions& options, const std::vector<int>& hosted) {
  if (options.listen.empty() && options.peers.empty())
    for (const std::string& seed : options.seeds)
      if (auto listening = listen_at_seed(seed)) return *std::move(listening);
  GOSSAMER_TRY(const Address address, listen_address(options, hosted));
  GOSSAMER_TRY(OpenPort port, OpenPort::open(address));
  Address actual = port.address();
  return Listening{std::move(port), std::move(actual), random_number()};
}

}  // namespace

Result<Listening> open_listening(const NetOptions& options, const std::vector<int>& hosted) {
  GOSSAMER_TRY(Listening listening, open_own(options, hosted));
  if (options.reach.advertise.empty()) return listening;
  listening.address = {};
  if (options.reach.advertise == kNoAddress) return listening;
  GOSSAMER_TRY(listening.address, parse_address(options.reach.advertise));
  return listening;
}

}  // namespace gossamer::net
