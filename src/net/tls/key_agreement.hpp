// Secrets that two processes have in common after each has sent the other a public key: X25519
// (RFC 7748) and HKDF with SHA-256 (RFC 5869); and random bits that follow from a secret
// (ChaCha20, RFC 8439). Listening to the public keys does not give the secret away. Which process a
// key is from, the connection that it came over proves.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

struct evp_cipher_ctx_st;
struct evp_pkey_st;

namespace gossamer::net {

/// 32 bytes that are overwritten when they are given up.
class Secret {
 public:
  Secret() = default;
  explicit Secret(const std::array<std::uint8_t, 32>& bytes) : bytes_(bytes) {}
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;
  ~Secret();
  const std::array<std::uint8_t, 32>& bytes() const { return bytes_; }

 private:
  std::array<std::uint8_t, 32> bytes_{};
};

using AgreementKey = std::array<std::uint8_t, 32>;  ///< public

/// A private X25519 key of this process, which is kept in memory alone. Copies share it.
class KeyAgreement {
 public:
  KeyAgreement();
  const AgreementKey& public_key() const { return public_key_; }
  /// The secret for `purpose` that the other end finds with this end's public key. None: the key of
  /// the other end is of low order, and the secret would be public.
  std::optional<Secret> secret(const AgreementKey& other, std::string_view purpose) const;

 private:
  std::shared_ptr<evp_pkey_st> key_;
  AgreementKey public_key_{};
};

/// The bits that follow from a secret and a number. Thread: one at a time.
class SecretBits {
 public:
  SecretBits(const Secret& secret, std::uint64_t number);
  void fill(std::span<std::uint64_t> numbers);

 private:
  std::shared_ptr<evp_cipher_ctx_st> cipher_;
};

}  // namespace gossamer::net
