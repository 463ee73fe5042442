// TLS without a socket: bytes of the other end go in, bytes for it come out, and between the two
// are the handshake and the records. Many records are encrypted or decrypted at a time; OpenSSL
// reads and writes the buffers of this class.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <vector>

#include "net/io/socket.hpp"
#include "net/tls/context.hpp"

struct ssl_st;

namespace gossamer::net {

enum class TlsRole { client, server };

/// Thread: the scheduler's. Not movable: OpenSSL holds its address.
class TlsEngine {
 public:
  /// Bytes that one read takes from the system: records are decrypted while they are in the cache.
  static constexpr std::size_t kInputBytes = std::size_t{256} << 10;
  /// Bytes that one call of encrypt() takes at most.
  static constexpr std::size_t kMaxPlainBytes = std::size_t{256} << 10;
  /// Bytes that the other end may send before the handshake is complete. One of ours sends about
  /// 900, and perhaps a hello behind them.
  static constexpr std::size_t kMaxHandshakeBytes = std::size_t{16} << 10;
  /// Records that they may be in. Ours sends about ten; OpenSSL takes a microsecond and more for
  /// each, however short it is.
  static constexpr int kMaxHandshakeRecords = 48;

  TlsEngine(const TlsContext& context, TlsRole role, KeyCheck allowed);
  ~TlsEngine();
  TlsEngine(const TlsEngine&) = delete;
  TlsEngine& operator=(const TlsEngine&) = delete;

  /// Where the next bytes of the other end belong. Only while has_input() is false.
  Area input_room();
  void input_filled(std::size_t bytes);
  /// Some of the bytes that came, or the values in them, have not been taken.
  bool has_input() const;

  /// Takes the handshake as far as the input allows. Returns an error if it failed.
  std::error_code handshake();
  /// Both ends have proved their keys.
  bool established() const { return established_; }

  // After the handshake:

  /// Encrypts the first bytes of `areas`, at most kMaxPlainBytes; returns how many, or an error.
  Transfer encrypt(std::span<const Area> areas);
  /// Decrypts into `areas` what has come; no bytes, no end and no error: more input is needed.
  Transfer decrypt(std::span<const Area> areas);
  /// Says that nothing more will be sent.
  void finish();

  /// Takes the bytes for the other end; they stay valid until the next call.
  std::span<const std::byte> take_output();
  bool has_output() const { return !output_.empty(); }

 private:
  struct Callbacks;

  bool write(std::span<const std::byte> bytes);
  std::error_code failure(int result);

  std::unique_ptr<ssl_st, void (*)(ssl_st*)> ssl_;
  KeyCheck allowed_;
  std::uint64_t records_per_key_;
  std::uint64_t records_ = 0;  ///< encrypted with the current key
  bool established_ = false;
  std::size_t handshake_received_ = 0;  ///< bytes before the handshake was complete
  int handshake_records_ = 0;           ///< records in them
  std::vector<std::byte> input_;
  std::size_t begin_ = 0, end_ = 0;      ///< the part of the input that was not taken
  std::optional<Transfer> last_result_;  ///< how decrypt() ends, after values before the end
  std::vector<std::byte> output_;        ///< for the other end
  std::vector<std::byte> sending_;       ///< of the last take_output()
  std::vector<std::byte> record_;        ///< small areas, which share a record
};

}  // namespace gossamer::net
