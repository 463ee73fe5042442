// What all TLS connections of a process share: its key in a certificate, and the settings.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "net/tls/keys.hpp"

struct ssl_ctx_st;

namespace gossamer::net {

/// Whether the other end may have this key. Asked once, within the handshake; the key is proved
/// when the handshake is complete.
using KeyCheck = std::function<bool(const PublicKey& key)>;

/// TLS 1.3 only, X25519, Ed25519, AES-GCM or ChaCha20-Poly1305; no tickets, no early data, no
/// resumption: every connection proves both keys anew. The certificate is made here, signed by the
/// key itself: other processes look only at the key, so its names and dates say nothing. Copies
/// share the settings. Thread: any, one at a time.
class TlsContext {
 public:
  /// Records that one key encrypts, 128 GiB in full records: well within the bound for AES-GCM (RFC
  /// 8446, section 5.5: 2^24.5 records).
  static constexpr std::uint64_t kRecordsPerKey = std::uint64_t{1} << 23;

  explicit TlsContext(const KeyPair& key, std::uint64_t records_per_key = kRecordsPerKey);

  std::uint64_t records_per_key() const { return records_per_key_; }
  /// For net/tls/engine.cpp. A connection's SSL_set_app_data() takes the address of its KeyCheck.
  ssl_ctx_st* get() const { return context_.get(); }

 private:
  std::shared_ptr<ssl_ctx_st> context_;
  std::uint64_t records_per_key_;
};

}  // namespace gossamer::net
