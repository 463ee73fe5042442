#include "net/tls/context.hpp"

#include "net/tls/openssl.hpp"

namespace gossamer::net {

namespace {

using openssl::made;
using openssl::require;

constexpr long kMaxCertificateBytes = 4096;  // of the other end; one of ours takes 300
constexpr long kTenYears = 10L * 365 * 24 * 3600;

openssl::Certificate make_certificate(EVP_PKEY* key) {
  openssl::Certificate certificate(made(X509_new()));
  X509* x509 = certificate.get();
  require(X509_set_version(x509, X509_VERSION_3));
  require(ASN1_INTEGER_set(X509_get_serialNumber(x509), 1));
  made(X509_gmtime_adj(X509_getm_notBefore(x509), 0));
  made(X509_gmtime_adj(X509_getm_notAfter(x509), kTenYears));
  X509_NAME* name = X509_get_subject_name(x509);
  const auto* text = reinterpret_cast<const unsigned char*>("gossamer");
  require(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, text, -1, -1, 0));
  require(X509_set_issuer_name(x509, name));
  require(X509_set_pubkey(x509, key));
  require(X509_sign(x509, key, nullptr));
  return certificate;
}

/// In place of the check of a chain: the certificate holds a key that is allowed. OpenSSL checks
/// afterwards that the other end can sign with it.
int verify_key(X509_STORE_CTX* store, void*) {
  const auto* ssl = static_cast<const SSL*>(
      X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
  const auto& allowed = *static_cast<const KeyCheck*>(SSL_get_app_data(ssl));
  const EVP_PKEY* key = X509_get0_pubkey(X509_STORE_CTX_get0_cert(store));
  PublicKey shown;
  std::size_t size = shown.bytes.size();
  const bool read = key != nullptr && EVP_PKEY_get_id(key) == EVP_PKEY_ED25519 &&
                    EVP_PKEY_get_raw_public_key(key, shown.bytes.data(), &size) == 1;
  if (read && allowed(shown)) return 1;
  X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_REJECTED);
  return 0;
}

}  // namespace

TlsContext::TlsContext(const KeyPair& key, std::uint64_t records_per_key)
    : context_(made(SSL_CTX_new(TLS_method())), SSL_CTX_free), records_per_key_(records_per_key) {
  SSL_CTX* context = context_.get();
  require(SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION));
  require(SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION));
  require(SSL_CTX_set_ciphersuites(
      context, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"));
  require(SSL_CTX_set1_groups_list(context, "X25519"));
  require(SSL_CTX_set1_sigalgs_list(context, "ed25519"));
  require(SSL_CTX_set1_client_sigalgs_list(context, "ed25519"));
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                                   SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_clear_options(context, SSL_OP_ENABLE_MIDDLEBOX_COMPAT);
  require(SSL_CTX_set_num_tickets(context, 0));
  require(SSL_CTX_set_max_early_data(context, 0));
  require(SSL_CTX_set_recv_max_early_data(context, 0));
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_max_cert_list(context, kMaxCertificateBytes);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_cert_verify_callback(context, verify_key, nullptr);
  require(SSL_CTX_use_certificate(context, make_certificate(key.get()).get()));
  require(SSL_CTX_use_PrivateKey(context, key.get()));
}

}  // namespace gossamer::net
