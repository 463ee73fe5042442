// A socket that encrypts what another socket carries. It keeps the contract of net/io/socket.hpp,
// so the layers above do not know which of the two they have.
#pragma once

#include <memory>

#include "gossip/scheduler.hpp"
#include "net/io/socket.hpp"
#include "net/tls/engine.hpp"

namespace gossamer::net {

/// The handshake is part of the first read or write. Until it is complete nothing is delivered, so
/// whatever is read was sent by the holder of a key that `allowed` accepted. A handshake that fails
/// sends its alert, and waits until the other end has closed or has sent 4 KiB, so that the other
/// end can read the alert; then the read or the write fails, with an error of net/tls/error.hpp.
/// There is no deadline: the user closes the socket. The end of the connection counts as the end of
/// the stream even without the alert that TLS has for it: the frames of a session say whether
/// anything is missing.
std::unique_ptr<Socket> encrypted(gossip::Scheduler& scheduler, std::unique_ptr<Socket> socket,
                                  const TlsContext& context, TlsRole role, KeyCheck allowed);

}  // namespace gossamer::net
