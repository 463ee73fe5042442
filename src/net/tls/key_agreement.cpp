#include "net/tls/key_agreement.hpp"

#include <openssl/crypto.h>
#include <openssl/kdf.h>

#include <algorithm>

#include "net/tls/openssl.hpp"

namespace gossamer::net {
namespace {

using KeyContext = std::unique_ptr<EVP_PKEY_CTX, openssl::Free<EVP_PKEY_CTX_free>>;

/// HKDF without a salt: an X25519 secret is as good as random once it is hashed.
Secret derived(std::span<const std::uint8_t> secret, std::string_view purpose) {
  const KeyContext context(openssl::made(EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, nullptr)));
  openssl::require(EVP_PKEY_derive_init(context.get()));
  openssl::require(EVP_PKEY_CTX_set_hkdf_md(context.get(), EVP_sha256()));
  openssl::require(
      EVP_PKEY_CTX_set1_hkdf_key(context.get(), secret.data(), static_cast<int>(secret.size())));
  openssl::require(EVP_PKEY_CTX_add1_hkdf_info(
      context.get(), reinterpret_cast<const unsigned char*>(purpose.data()),
      static_cast<int>(purpose.size())));
  std::array<std::uint8_t, 32> bytes{};
  std::size_t size = bytes.size();
  openssl::require(EVP_PKEY_derive(context.get(), bytes.data(), &size));
  const Secret made(bytes);
  OPENSSL_cleanse(bytes.data(), bytes.size());
  return made;
}

}  // namespace

Secret::~Secret() { OPENSSL_cleanse(bytes_.data(), bytes_.size()); }

KeyAgreement::KeyAgreement()
    : key_(openssl::made(EVP_PKEY_Q_keygen(nullptr, nullptr, "X25519")), EVP_PKEY_free) {
  std::size_t size = public_key_.size();
  openssl::require(EVP_PKEY_get_raw_public_key(key_.get(), public_key_.data(), &size));
}

std::optional<Secret> KeyAgreement::secret(const AgreementKey& other,
                                           std::string_view purpose) const {
  const openssl::Key theirs(openssl::made(
      EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, nullptr, other.data(), other.size())));
  const KeyContext context(openssl::made(EVP_PKEY_CTX_new(key_.get(), nullptr)));
  openssl::require(EVP_PKEY_derive_init(context.get()));
  std::array<std::uint8_t, 32> shared{};
  std::size_t size = shared.size();
  // OpenSSL refuses a result of zeros, which is that of a key of low order.
  const bool ok = EVP_PKEY_derive_set_peer(context.get(), theirs.get()) > 0 &&
                  EVP_PKEY_derive(context.get(), shared.data(), &size) > 0;
  std::optional<Secret> made;
  if (ok) made = derived(shared, purpose);
  else ERR_clear_error();
  OPENSSL_cleanse(shared.data(), shared.size());
  return made;
}

SecretBits::SecretBits(const Secret& secret, std::uint64_t number)
    : cipher_(openssl::made(EVP_CIPHER_CTX_new()), EVP_CIPHER_CTX_free) {
  // OpenSSL's 16 bytes: a counter of blocks of 32 bits, and the nonce of 96 bits.
  std::array<std::uint8_t, 16> start{};
  for (std::size_t k = 0; k < sizeof number; ++k)
    start[4 + k] = static_cast<std::uint8_t>(number >> (8 * k));
  openssl::require(EVP_EncryptInit_ex(cipher_.get(), EVP_chacha20(), nullptr, secret.bytes().data(),
                                      start.data()));
}

void SecretBits::fill(std::span<std::uint64_t> numbers) {
  std::ranges::fill(numbers, 0);
  auto* const bytes = reinterpret_cast<unsigned char*>(numbers.data());
  int written = 0;
  openssl::require(EVP_EncryptUpdate(cipher_.get(), bytes, &written, bytes,
                                     static_cast<int>(numbers.size_bytes())));
}

}  // namespace gossamer::net
