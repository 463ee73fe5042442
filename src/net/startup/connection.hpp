// What a handshake leaves.
#pragma once

#include <memory>
#include <optional>

#include "net/io/socket.hpp"
#include "net/startup/route.hpp"
#include "net/tls/keys.hpp"

namespace gossamer::net {

/// A connection after its handshake.
struct Connection {
  std::unique_ptr<Socket> socket;
  std::optional<PublicKey> key = {};  ///< of the other end, proved; none if it is not encrypted
  Route route = {};
};

}  // namespace gossamer::net
