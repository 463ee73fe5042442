#include "net/tls/engine.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.hpp"
#include "net/tls/error.hpp"
#include "net/tls/openssl.hpp"

namespace gossamer::net {

namespace {

// The most that TLS puts into a record.
constexpr std::size_t kRecordBytes = SSL3_RT_MAX_PLAIN_LENGTH;
// Areas of fewer bytes are copied together into one record.
constexpr std::size_t kSmallAreaBytes = 2048;
// What may wait for the other end: a full write, and the answers of TLS to what it sends. An end
// that asks for more of these without reading them loses the connection.
constexpr std::size_t kMaxOutputBytes = std::size_t{1} << 20;

}  // namespace

/// OpenSSL's calls into the engine for the bytes below the records.
struct TlsEngine::Callbacks {
  static TlsEngine& engine_of(BIO* bio) { return *static_cast<TlsEngine*>(BIO_get_data(bio)); }

  static int read(BIO* bio, char* into, int size) {
    BIO_clear_retry_flags(bio);
    TlsEngine& engine = engine_of(bio);
    if (engine.handshake_records_ > kMaxHandshakeRecords) return -1;
    const std::size_t count = std::min(static_cast<std::size_t>(size), engine.end_ - engine.begin_);
    if (count == 0) {
      BIO_set_retry_read(bio);
      return -1;
    }
    std::memcpy(into, engine.input_.data() + engine.begin_, count);
    engine.begin_ += count;
    return static_cast<int>(count);
  }

  static int write(BIO* bio, const char* from, int size) {
    BIO_clear_retry_flags(bio);
    std::vector<std::byte>& output = engine_of(bio).output_;
    if (output.size() + static_cast<std::size_t>(size) > kMaxOutputBytes) return -1;
    const auto* bytes = reinterpret_cast<const std::byte*>(from);
    output.insert(output.end(), bytes, bytes + size);
    return size;
  }

  /// OpenSSL calls it for each message and each header of a record.
  static void on_message(int is_sent, int, int type, const void*, std::size_t, SSL*, void* engine) {
    if (is_sent == 0 && type == SSL3_RT_HEADER)
      ++static_cast<TlsEngine*>(engine)->handshake_records_;
  }

  static long control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

  static BIO_METHOD* method() {
    static const openssl::BioMethod method = [] {
      openssl::BioMethod made(
          openssl::made(BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "gossamer")));
      BIO_meth_set_read(made.get(), read);
      BIO_meth_set_write(made.get(), write);
      BIO_meth_set_ctrl(made.get(), control);
      return made;
    }();
    return method.get();
  }
};

TlsEngine::TlsEngine(const TlsContext& context, TlsRole role, KeyCheck allowed)
    : ssl_(openssl::made(SSL_new(context.get())), SSL_free),
      allowed_(std::move(allowed)),
      records_per_key_(context.records_per_key()),
      input_(kMaxHandshakeBytes) {
  BIO* bio = openssl::made(BIO_new(Callbacks::method()));
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_.get(), bio, bio);
  SSL_set_app_data(ssl_.get(), &allowed_);
  SSL_set_msg_callback(ssl_.get(), Callbacks::on_message);
  SSL_set_msg_callback_arg(ssl_.get(), this);
  if (role == TlsRole::server) SSL_set_accept_state(ssl_.get());
  else SSL_set_connect_state(ssl_.get());
}

TlsEngine::~TlsEngine() = default;

Area TlsEngine::input_room() {
  GOSSAMER_CHECK(begin_ == end_, "input before the earlier input was taken");
  if (established_ && input_.size() < kInputBytes) input_.resize(kInputBytes);
  begin_ = end_ = 0;
  return {input_.data(), input_.size()};
}

void TlsEngine::input_filled(std::size_t bytes) {
  end_ = bytes;
  if (!established_) handshake_received_ += bytes;
}

bool TlsEngine::has_input() const {
  return begin_ < end_ || last_result_ || SSL_pending(ssl_.get()) > 0;
}

std::error_code TlsEngine::handshake() {
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_.get());
  established_ = result == 1;
  if (established_) {
    SSL_set_msg_callback(ssl_.get(), nullptr);
    return {};
  }
  if (handshake_records_ > kMaxHandshakeRecords) {
    ERR_clear_error();
    return TlsError::too_long;
  }
  if (const std::error_code error = failure(result))
    return error == TlsError::key_was_refused ? make_error_code(TlsError::alerted) : error;
  return handshake_received_ > kMaxHandshakeBytes ? TlsError::too_long : std::error_code();
}

/// Why a call did not succeed; no error if it needs more input.
std::error_code TlsEngine::failure(int result) {
  const int kind = SSL_get_error(ssl_.get(), result);
  if (kind == SSL_ERROR_WANT_READ) return {};
  if (kind == SSL_ERROR_SSL) return take_tls_error();
  ERR_clear_error();
  return TlsError::protocol;
}

bool TlsEngine::write(std::span<const std::byte> bytes) {
  const std::uint64_t records = (bytes.size() + kRecordBytes - 1) / kRecordBytes;
  if (records_ + records > records_per_key_) {
    records_ = 0;
    if (SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED) != 1) return false;
  }
  records_ += records;
  std::size_t done = 0;
  return SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &done) == 1 && done == bytes.size();
}

Transfer TlsEngine::encrypt(std::span<const Area> areas) {
  ERR_clear_error();
  Transfer result;
  bool written = true;
  const auto flush = [this, &written] {
    if (!record_.empty()) written = write(record_) && written;
    record_.clear();
  };
  for (const Area& area : areas) {
    const std::size_t size = std::min(area.size, kMaxPlainBytes - result.bytes);
    const auto* bytes = static_cast<const std::byte*>(area.data);
    if (size < kSmallAreaBytes) {
      if (record_.size() + size > kRecordBytes) flush();
      record_.insert(record_.end(), bytes, bytes + size);
    } else {
      flush();
      written = written && write({bytes, size});
    }
    result.bytes += size;
    if (!written || result.bytes == kMaxPlainBytes) break;
  }
  flush();
  if (!written) return {0, false, take_tls_error()};
  return result;
}

Transfer TlsEngine::decrypt(std::span<const Area> areas) {
  if (last_result_) return *last_result_;
  ERR_clear_error();
  Transfer result;
  for (const Area& area : areas) {
    std::size_t filled = 0;
    while (filled < area.size) {
      std::size_t count = 0;
      auto* into = static_cast<std::byte*>(area.data) + filled;
      if (SSL_read_ex(ssl_.get(), into, area.size - filled, &count) == 1) {
        filled += count;
        result.bytes += count;
        continue;
      }
      Transfer last{0, SSL_get_error(ssl_.get(), 0) == SSL_ERROR_ZERO_RETURN, {}};
      if (!last.end) last.error = failure(0);
      if (result.bytes == 0) return last;
      // What was decrypted before is delivered first.
      if (last.end || last.error) last_result_ = last;
      return result;
    }
  }
  return result;
}

void TlsEngine::finish() {
  ERR_clear_error();
  SSL_shutdown(ssl_.get());
  ERR_clear_error();
}

std::span<const std::byte> TlsEngine::take_output() {
  sending_.clear();
  std::swap(sending_, output_);
  return sending_;
}

}  // namespace gossamer::net
