#include "net/tls/tls_socket.hpp"

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "net/io/deferred_call.hpp"
#include "net/tls/error.hpp"

namespace gossamer::net {

namespace {

using namespace std::chrono_literals;

// What is read and discarded at most after a handshake has failed.
constexpr std::size_t kMaxDiscardedBytes = 4096;

/// The state of a socket. Calls to the user may destroy the socket, so it is held by a shared_ptr.
class TlsStream final : public SocketUser, public std::enable_shared_from_this<TlsStream> {
 public:
  TlsStream(gossip::Scheduler& scheduler, std::unique_ptr<Socket> socket, const TlsContext& context,
            TlsRole role, KeyCheck allowed)
      : socket_(std::move(socket)),
        remote_(socket_->remote()),
        local_host_(socket_->local_host()),
        is_local_(socket_->is_local()),
        engine_(context, role, std::move(allowed)),
        advance_later_(scheduler, [this] { advance(); }) {
    socket_->set_user(this);
  }

  void set_user(SocketUser* user) { user_ = user; }
  const std::string& remote() const { return remote_; }
  const std::string& local_host() const { return local_host_; }
  bool is_local() const { return is_local_; }

  void read(std::span<const Area> areas) {
    into_.assign(areas.begin(), areas.end());
    if (engine_.established() && !engine_.has_input()) fill();
    else advance_later_.call_after(0ns);
  }

  void write(std::span<const Area> areas) {
    from_.assign(areas.begin(), areas.end());
    if (engine_.established()) encrypt();
    else advance_later_.call_after(0ns);
  }

  void finish_sending() {
    finishing_ = true;
    if (engine_.established()) engine_.finish();
    flush();
  }

  void close() {
    user_ = nullptr;
    advance_later_.cancel();
    if (socket_) socket_->close();
  }

  void read_done(const Transfer& transfer) override {
    const auto self = shared_from_this();
    filling_ = false;
    if (failure_) return discard(transfer);
    if (transfer.end || transfer.error) return on_read_failure(transfer);
    engine_.input_filled(transfer.bytes);
    advance();
  }

  void write_done(const Transfer& transfer) override {
    const auto self = shared_from_this();
    if (transfer.error) return on_write_failure(transfer);
    sending_ = sending_.subspan(transfer.bytes);
    if (!sending_.empty()) return send();
    flush();
    if (sending_.empty()) on_flushed();
  }

 private:
  /// Does all that is possible at present. Called from the scheduler's loop.
  void advance() {
    const auto self = shared_from_this();
    if (user_ == nullptr) return;
    if (failure_) return report({0, false, failure_});
    if (!engine_.established()) {
      const std::error_code error = engine_.handshake();
      if (error) return fail(error);
      flush();
      if (!engine_.established()) return fill();
    }
    if (!from_.empty() && encrypted_ == 0) encrypt();
    if (!into_.empty() && user_ != nullptr) decrypt();
  }

  void encrypt() {
    const Transfer done = engine_.encrypt(from_);
    encrypted_ = done.bytes;
    if (done.error) {
      failure_ = done.error;
      return advance_later_.call_after(0ns);
    }
    flush();
  }

  void decrypt() {
    const Transfer done = engine_.decrypt(into_);
    flush();  // an alert, or the answer to a change of keys
    if (done.bytes == 0 && !done.end && !done.error) return fill();
    into_.clear();
    user_->read_done(done);
  }

  /// Reads more from the socket.
  void fill() {
    if (std::exchange(filling_, true)) return;
    const Area room = engine_.input_room();
    socket_->read({&room, 1});
  }

  /// Begins to send what the engine has for the other end.
  void flush() {
    if (!sending_.empty()) return;
    if (engine_.has_output()) {
      sending_ = engine_.take_output();
      return send();
    }
    if (finishing_) socket_->finish_sending();
  }

  void send() {
    const Area area{const_cast<std::byte*>(sending_.data()), sending_.size()};
    socket_->write({&area, 1});
  }

  /// Everything that was encrypted is with the system.
  void on_flushed() {
    if (failure_) return wait_for_end();
    if (encrypted_ == 0 || user_ == nullptr) return;
    const Transfer done{std::exchange(encrypted_, 0), false, {}};
    from_.clear();
    user_->write_done(done);
  }

  // As with a plain socket, what was sent may still be read when writing fails, and the other way
  // round; a handshake needs both.

  void on_read_failure(const Transfer& transfer) {
    if (!engine_.established())
      return report(transfer.end ? Transfer{0, false, TlsError::closed} : transfer);
    if (std::exchange(into_, {}).empty() || user_ == nullptr) return;
    user_->read_done(transfer);
  }

  void on_write_failure(const Transfer& transfer) {
    sending_ = {};
    if (!engine_.established()) return report(transfer);
    encrypted_ = 0;
    if (std::exchange(from_, {}).empty() || user_ == nullptr) return;
    user_->write_done(transfer);
  }

  // The handshake failed.

  void fail(std::error_code error) {
    failure_ = error;
    const bool alerts = engine_.has_output();
    flush();
    if (!alerts && sending_.empty()) report({0, false, error});
  }

  /// The alert is sent. Input that lies unread when the socket is closed would have the system drop
  /// what the other end has not read.
  void wait_for_end() {
    socket_->finish_sending();
    if (std::exchange(filling_, true)) return;
    const Area area{discarded_.data(), discarded_.size()};
    socket_->read({&area, 1});
  }

  void discard(const Transfer& transfer) {
    discarded_bytes_ += transfer.bytes;
    if (transfer.end || transfer.error || discarded_bytes_ >= kMaxDiscardedBytes)
      return report({0, false, failure_});
    wait_for_end();
  }

  /// Ends the read and the write that are under way.
  void report(const Transfer& transfer) {
    const bool reads = !std::exchange(into_, {}).empty();
    const bool writes = !std::exchange(from_, {}).empty();
    encrypted_ = 0;
    if (reads && user_ != nullptr) user_->read_done(transfer);
    if (writes && user_ != nullptr) user_->write_done(transfer);
  }

  std::unique_ptr<Socket> socket_;
  std::string remote_, local_host_;
  bool is_local_;
  SocketUser* user_ = nullptr;
  TlsEngine engine_;
  DeferredCall advance_later_;
  std::vector<Area> into_, from_;       ///< of the user's read and write; empty: none is under way
  std::size_t encrypted_ = 0;           ///< bytes of `from_` that are being sent
  bool filling_ = false;                ///< the socket is being read
  std::span<const std::byte> sending_;  ///< being written to the socket
  bool finishing_ = false;              ///< finish_sending() was called
  std::error_code failure_;             // none: not failed
  std::array<std::byte, 512> discarded_;
  std::size_t discarded_bytes_ = 0;
};

class TlsSocket final : public Socket {
 public:
  explicit TlsSocket(std::shared_ptr<TlsStream> stream) : stream_(std::move(stream)) {}
  ~TlsSocket() override { stream_->close(); }

  void set_user(SocketUser* user) override { stream_->set_user(user); }
  void read(std::span<const Area> areas) override { stream_->read(areas); }
  void write(std::span<const Area> areas) override { stream_->write(areas); }
  void finish_sending() override { stream_->finish_sending(); }
  void close() override { stream_->close(); }
  const std::string& remote() const override { return stream_->remote(); }
  bool is_local() const override { return stream_->is_local(); }
  std::string local_host() const override { return stream_->local_host(); }

 private:
  std::shared_ptr<TlsStream> stream_;
};

}  // namespace

std::unique_ptr<Socket> encrypted(gossip::Scheduler& scheduler, std::unique_ptr<Socket> socket,
                                  const TlsContext& context, TlsRole role, KeyCheck allowed) {
  return std::make_unique<TlsSocket>(
      std::make_shared<TlsStream>(scheduler, std::move(socket), context, role, std::move(allowed)));
}

}  // namespace gossamer::net
