// TCP as the rest of this folder sees it: connect, listen, gathered reads and writes of any size.
// Asio is behind it, in socket.cpp and real_scheduler.cpp alone.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <system_error>

#include "base/result.hpp"
#include "net/address.hpp"
#include "net/real_scheduler.hpp"
#include "net/wire/frame_reader.hpp"

namespace gossamer::net {

/// How a read or a write ended.
struct Transfer {
  std::size_t bytes = 0;
  bool end = false;       ///< of a read: the other side sends nothing more
  std::error_code error;  ///< anything else that went wrong
};

/// Why a transfer brought nothing, in words: "the connection was closed", "connection reset by
/// peer".
std::string reason(const Transfer& transfer);

/// Who uses a socket. Called from the scheduler's loop, never from within read() or write().
class SocketUser {
 public:
  virtual ~SocketUser() = default;
  virtual void read_done(const Transfer& transfer) = 0;
  virtual void write_done(const Transfer& transfer) = 0;
};

/// One connection: TCP's, or a simulated one (simulator/session/line.hpp). One read and one write
/// at a time. Its end closes the connection, and no call comes after it. Thread: the scheduler's.
class Socket {
 public:
  static constexpr std::size_t kMaxAreas = 64;  // what a system call takes

  virtual ~Socket() = default;

  virtual void set_user(SocketUser* user) = 0;
  /// Reads what is there, 1 byte at least, into `areas`, in order; their memory stays valid until
  /// read_done.
  virtual void read(std::span<const Area> areas) = 0;
  /// Writes as much as the connection takes, 1 byte at least; memory as above.
  virtual void write(std::span<const Area> areas) = 0;
  /// Tells the other side that nothing more comes.
  virtual void finish_sending() = 0;
  virtual void close() = 0;
  /// The other side's address.
  virtual const std::string& remote() const = 0;
};

using OnConnected = std::function<void(Result<std::unique_ptr<Socket>>)>;

/// A connection being made; its end gives it up, and no call comes after it.
class Attempt {
 public:
  virtual ~Attempt() = default;
};

/// Resolves and connects, then calls `done`, never from within. The error is the reason alone, in
/// words; its kind is `rejected` where the machine is there and nobody listens, else `network`. No
/// deadline: the caller ends the attempt.
std::unique_ptr<Attempt> connect(RealScheduler& scheduler, const Address& address,
                                 OnConnected done);

/// Takes connections until its end.
class Listener {
 public:
  virtual ~Listener() = default;
  /// What it is bound to: the real port where 0 was asked for.
  virtual Address address() const = 0;
};

/// Listens at once; `accepted` is called for each connection. The error names the address and says
/// what to do.
Result<std::unique_ptr<Listener>> listen(RealScheduler& scheduler, const Address& address,
                                         std::function<void(std::unique_ptr<Socket>)> accepted);

/// This machine's name, for others to call.
std::string host_name();

}  // namespace gossamer::net
