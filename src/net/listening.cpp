#include "net/listening.hpp"

#include <optional>
#include <string>

namespace gossamer::net {

namespace {

/// Nothing if the seed is no address of this machine, or another process has it.
std::optional<Listening> listen_at_seed(const std::string& text) {
  const auto seed = parse_address(text);
  if (!seed.ok()) return std::nullopt;
  {
    auto port = OpenPort::open(*seed);
    if (!port.ok()) return std::nullopt;
    if (!port->is_loopback() || is_loopback(*seed))
      return Listening{std::move(port).value(), *seed};
  }
  // The name of this machine, which Debian's /etc/hosts gives an address that no other machine
  // reaches.
  auto port = OpenPort::open({"0.0.0.0", seed->port});
  if (!port.ok()) return std::nullopt;
  return Listening{std::move(port).value(), *seed};
}

}  // namespace

Result<Listening> open_listening(const NetOptions& options, const std::vector<int>& hosted) {
  if (options.listen.empty() && options.peers.empty())
    for (const std::string& seed : options.seeds)
      if (auto listening = listen_at_seed(seed)) return *std::move(listening);
  GOSSAMER_TRY(const Address address, listen_address(options, hosted));
  GOSSAMER_TRY(OpenPort port, OpenPort::open(address));
  Address actual = port.address();
  return Listening{std::move(port), std::move(actual)};
}

}  // namespace gossamer::net
