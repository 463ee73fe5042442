// The byte stream of a handshake: exact reads and writes on a fresh connection before it belongs to
// a session, with one deadline over all of them.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "net/io/socket.hpp"
#include "net/wire/book_message.hpp"
#include "net/wire/hello.hpp"
#include "net/wire/relay_request.hpp"

namespace gossamer::net {

/// An address book as it came.
struct ReceivedBook {
  bool same_network = false;
  std::vector<AddressRecord> records;
};

/// Held by a shared_ptr, which may be released at any time, also from within a callback. There is
/// no callback after close(). Thread: the scheduler's.
class HandshakeStream final : public SocketUser,
                              public std::enable_shared_from_this<HandshakeStream> {
 public:
  using OnEnd = std::function<void(const std::string& why)>;

  /// `on_end` is called once, when the connection breaks or `deadline` passes.
  HandshakeStream(RealScheduler& scheduler, std::unique_ptr<Socket> socket, gossip::Time deadline,
                  OnEnd on_end);
  ~HandshakeStream() override;

  /// Reads exactly `bytes` bytes. One read at a time.
  void read(std::size_t bytes, std::function<void(std::span<const std::byte>)> then);
  /// Reads a hello. `goes_on` receives its first words, and says whether the rest is to be read; it
  /// says no if it has released the stream. `on_hello` receives the whole, or nothing where the
  /// bytes, also the first, are no hello.
  void read_hello(std::function<bool(const HelloPrefix&)> goes_on,
                  std::function<void(const std::optional<Hello>&)> on_hello);
  /// Reads what follows the first words of an address book, of a network of `nodes` nodes.
  /// `on_book` receives the records, none if the book is of another network, or nothing where the
  /// bytes are no book.
  void read_book(int nodes, const std::string& network,
                 std::function<void(const std::optional<ReceivedBook>&)> on_book);
  /// Reads what follows the first words of a request to a relay. `on_request` receives nothing
  /// where the bytes are none.
  void read_relay_request(std::function<void(const std::optional<RelayRequest>&)> on_request);
  /// Writes all bytes, of which it keeps a copy. One write at a time.
  void write(std::span<const std::byte> bytes, std::function<void()> then);
  /// What is read and discarded of a connection at most after the refusal was written to it.
  static constexpr std::size_t kMaxDrainedBytes = 4096;
  /// Closes the sending side, and reads on until the other end has closed or sent kMaxDrainedBytes,
  /// so that it can read what was written; then calls on_end.
  void close_gracefully();
  /// Hands the socket over and closes the stream.
  std::unique_ptr<Socket> release();
  void close();

  const std::string& remote() const { return remote_; }
  /// No byte has come from the other end, beside a handshake of TLS that it did not finish.
  bool silent() const { return !heard_; }
  /// Socket::local_host().
  const std::string& local_host() const { return local_host_; }
  /// Of the transfer that ended the stream; none if it was closed or its deadline passed.
  const std::error_code& error() const { return error_; }

  void read_done(const Transfer& transfer) override;
  void write_done(const Transfer& transfer) override;

 private:
  void read_settings(std::vector<std::byte> hello,
                     const std::function<void(const std::optional<Hello>&)>& on_hello);
  void read_payload(std::vector<std::byte> payload, std::size_t missing,
                    std::function<void(std::span<const std::byte>)> then);
  void continue_read();
  void on_failure(const Transfer& transfer);
  void end(const std::string& why);

  RealScheduler& scheduler_;
  std::unique_ptr<Socket> socket_;
  std::string remote_, local_host_;
  std::error_code error_;
  OnEnd on_end_;
  gossip::Scheduler::TimerId timer_;

  std::vector<std::byte> in_, out_;
  std::size_t received_ = 0, written_ = 0, drained_ = 0;
  bool heard_ = false, discarding_ = false;
  std::function<void(std::span<const std::byte>)> after_read_;
  std::function<void()> after_write_;
};

}  // namespace gossamer::net
