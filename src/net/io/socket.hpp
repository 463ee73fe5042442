// TCP sockets: connect, listen, scattered reads and gathered writes. Only socket.cpp and
// real_scheduler.cpp use Asio; simulator/session/socket_pair.hpp implements the same interface in
// virtual time.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "net/io/address.hpp"
#include "net/io/area.hpp"
#include "net/io/real_scheduler.hpp"

namespace gossamer::net {

/// How a read or a write ended.
struct Transfer {
  std::size_t bytes = 0;
  bool end = false;       ///< of a read: the other end has closed its sending side
  std::error_code error;  ///< any other failure
};

/// Why a transfer failed, in words: "the connection was closed", "connection reset by peer".
std::string reason(const Transfer& transfer);

/// Receives the results of a socket's operations. Called from the scheduler's loop, never from
/// within read() or write().
class SocketUser {
 public:
  virtual ~SocketUser() = default;
  virtual void read_done(const Transfer& transfer) = 0;
  virtual void write_done(const Transfer& transfer) = 0;
};

/// One connection. At most one read and one write at a time. Its destruction closes the connection,
/// and no callback follows. Thread: the scheduler's.
class Socket {
 public:
  static constexpr std::size_t kMaxAreas = 64;  ///< of one system call

  virtual ~Socket() = default;

  virtual void set_user(SocketUser* user) = 0;
  /// Reads the available bytes, 1 at least, into `areas`, in order; their memory stays valid until
  /// read_done.
  virtual void read(std::span<const Area> areas) = 0;
  /// Writes as many bytes as the connection accepts, 1 at least; the memory stays valid until
  /// write_done.
  virtual void write(std::span<const Area> areas) = 0;
  /// Closes the sending side of the connection.
  virtual void finish_sending() = 0;
  virtual void close() = 0;
  /// The address of the other end.
  virtual const std::string& remote() const = 0;
  /// The other end has an address of this machine, though perhaps as a proxy of another one.
  virtual bool is_local() const = 0;
  /// The address of this end, as a number without its port; empty if it is not known.
  virtual std::string local_host() const { return {}; }
};

using OnConnected = std::function<void(Result<std::unique_ptr<Socket>>)>;

/// A connection that is being made. Its destruction abandons the attempt, and no callback follows.
class Attempt {
 public:
  virtual ~Attempt() = default;
};

/// Resolves the name and connects, then calls `done`, never from within this call. The error is the
/// reason alone, in words; its kind is `rejected` if the machine answers and no process listens
/// there, else `network`. There is no deadline: the caller destroys the attempt.
std::unique_ptr<Attempt> connect(RealScheduler& scheduler, const Address& address,
                                 OnConnected done);

/// Accepts connections until it is destroyed.
class Listener {
 public:
  virtual ~Listener() = default;
  /// The address that it is bound to, with the actual port if port 0 was requested.
  virtual Address address() const = 0;
  /// Accepts no connection for a while: they wait in the system's queue, of at most kBacklog.
  virtual void pause(gossip::Time time) = 0;
};

/// Connections that the system takes for a port before the process accepts them. The next one is
/// tried again by its own system, after a second at first.
inline constexpr int kBacklog = 512;

/// A port of this machine on which the system takes connections. They wait, at most kBacklog,
/// until a listener accepts them. Its destruction closes the port, unless a listener has
/// it. Thread: any, one at a time.
class OpenPort {
 public:
  /// Error (network): names the address and says what to do.
  static Result<OpenPort> open(const Address& address);

  /// With the actual port if port 0 was requested.
  const Address& address() const { return address_; }
  bool is_loopback() const { return is_loopback_; }  ///< only this machine reaches it
  int descriptor() const { return descriptor_.get(); }

 private:
  OpenPort(Address address, bool is_loopback, Descriptor descriptor)
      : address_(std::move(address)),
        is_loopback_(is_loopback),
        descriptor_(std::move(descriptor)) {}

  Address address_;
  bool is_loopback_;
  Descriptor descriptor_;
};

/// Calls `accepted` for each connection to the port. Error (network): names the address.
Result<std::unique_ptr<Listener>> listen(RealScheduler& scheduler, const OpenPort& port,
                                         std::function<void(std::unique_ptr<Socket>)> accepted);
/// The same on a port that is opened for it. Error (network): as of OpenPort::open().
Result<std::unique_ptr<Listener>> listen(RealScheduler& scheduler, const Address& address,
                                         std::function<void(std::unique_ptr<Socket>)> accepted);

/// The name of this machine, under which other machines can reach it.
std::string host_name();

}  // namespace gossamer::net
