#include "net/tls/error.hpp"

#include <openssl/sslerr.h>

#include <string>

#include "net/tls/openssl.hpp"

namespace gossamer::net {

namespace {

class TlsCategory final : public std::error_category {
 public:
  const char* name() const noexcept override { return "TLS"; }
  std::string message(int value) const override {
    switch (static_cast<TlsError>(value)) {
      case TlsError::not_tls:
        return "its bytes are no TLS: every process of a network with keys needs net.key";
      case TlsError::old_version: return "it offers no TLS 1.3";
      case TlsError::no_certificate: return "it proves no key";
      case TlsError::refused_key: return "its key is not the right one";
      case TlsError::key_was_refused:
      case TlsError::alerted: return "it refuses the key of this process";
      case TlsError::closed:
        return "the connection was closed in the TLS handshake: every process of a network with "
               "keys needs net.key";
      case TlsError::too_long: return "its TLS handshake takes too many bytes";
      case TlsError::damaged: return "a TLS record was changed on the way";
      case TlsError::protocol: return "it broke the TLS protocol";
    }
    return "an unknown TLS error";
  }
};

}  // namespace

const std::error_category& tls_category() {
  static const TlsCategory category;
  return category;
}

TlsError take_tls_error() {
  const unsigned long error = ERR_peek_error();
  ERR_clear_error();
  switch (ERR_GET_REASON(error)) {
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_HTTP_REQUEST:
    case SSL_R_HTTPS_PROXY_REQUEST:
    case SSL_R_BAD_RECORD_TYPE: return TlsError::not_tls;
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION: return TlsError::old_version;
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE: return TlsError::no_certificate;
    case SSL_R_CERTIFICATE_VERIFY_FAILED: return TlsError::refused_key;
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED: return TlsError::key_was_refused;
    case SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC:
    case SSL_R_SSLV3_ALERT_BAD_RECORD_MAC: return TlsError::damaged;
    default: return TlsError::protocol;
  }
}

}  // namespace gossamer::net
