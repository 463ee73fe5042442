// How a TLS connection fails, as error codes whose messages are clauses in words.
#pragma once

#include <system_error>

namespace gossamer::net {

enum class TlsError {
  not_tls = 1,      ///< the other end's first bytes are no TLS
  old_version,      ///< the other end offers no TLS 1.3
  no_certificate,   ///< the other end proves no key
  refused_key,      ///< this end refuses the key of the other end
  key_was_refused,  ///< the other end, which has proved its key, refuses the key of this end
  alerted,          ///< the same, of an end that has proved nothing
  closed,           ///< the connection was closed within the handshake
  too_long,         ///< the handshake takes more bytes than one of this program
  damaged,          ///< a record was changed on the way
  protocol,         ///< any other violation of TLS
};

const std::error_category& tls_category();
inline std::error_code make_error_code(TlsError error) {
  return {static_cast<int>(error), tls_category()};
}
/// The error that OpenSSL's queue holds; empties the queue.
TlsError take_tls_error();

}  // namespace gossamer::net

template <>
struct std::is_error_code_enum<gossamer::net::TlsError> : std::true_type {};
