// The few words on a fresh connection before it is a session: exact reads, exact writes, and one
// deadline over all of it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "net/socket.hpp"

namespace gossamer::net {

/// Held by a shared_ptr; it may be let go at any time, from within its own calls too, and calls
/// nothing after close(). Thread: the scheduler's.
class HandshakeStream final : public SocketUser,
                              public std::enable_shared_from_this<HandshakeStream> {
 public:
  using OnEnd = std::function<void(const std::string& why)>;

  /// `on_end`: the connection broke, or `deadline` passed; once.
  HandshakeStream(RealScheduler& scheduler, std::unique_ptr<Socket> socket, gossip::Time deadline,
                  OnEnd on_end);
  ~HandshakeStream() override;

  void read(std::size_t bytes, std::function<void(std::span<const std::byte>)> then);
  void write(std::span<const std::byte> bytes, std::function<void()> then);
  /// Sends no more, and reads on until the other side has closed, so that it can read our last
  /// words; then on_end.
  void hang_up();
  /// Hands the socket over; the talk is at its end.
  std::unique_ptr<Socket> release();
  void close();

  const std::string& remote() const { return remote_; }

  void read_done(const Transfer& transfer) override;
  void write_done(const Transfer& transfer) override;

 private:
  void read_on();
  void end(const std::string& why);

  RealScheduler& scheduler_;
  std::unique_ptr<Socket> socket_;
  std::string remote_;
  OnEnd on_end_;
  gossip::Scheduler::TimerId timer_;

  std::vector<std::byte> in_, out_;
  std::size_t in_got_ = 0, out_written_ = 0;
  bool discarding_ = false;
  std::function<void(std::span<const std::byte>)> after_read_;
  std::function<void()> after_write_;
};

}  // namespace gossamer::net
