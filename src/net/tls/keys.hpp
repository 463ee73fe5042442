// The identity of a process: an Ed25519 key. Its public half, 32 bytes, is what other processes
// know it by; the private half stays in a file that only its owner can read.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "net/wire/book_message.hpp"

struct evp_pkey_st;

namespace gossamer::net {

struct PublicKey {
  std::array<std::uint8_t, 32> bytes{};

  auto operator<=>(const PublicKey&) const = default;
};

/// The 32 bytes in base64: 44 characters.
std::string to_string(const PublicKey& key);
/// Error (invalid): the text is no public key; the message quotes it and says what one looks like.
Result<PublicKey> parse_public_key(const std::string& text);

/// Whether the holder of the key has signed the text.
bool has_signed(const PublicKey& key, std::string_view text, const Signature& signature);

/// A private key with its public key. Copies share the key.
class KeyPair {
 public:
  static KeyPair generate();
  /// Reads a PEM file (PKCS#8). Errors (data): the file cannot be read, other users may read it, or
  /// it holds no Ed25519 key; the message names the file and says what to do.
  static Result<KeyPair> load(const std::filesystem::path& path);

  /// Writes a new file with mode 0600. Error (data): the file exists, or cannot be written.
  Status save(const std::filesystem::path& path) const;

  const PublicKey& public_key() const { return public_key_; }
  Signature sign(std::string_view text) const;

  /// For net/tls/context.cpp.
  evp_pkey_st* get() const { return key_.get(); }

 private:
  explicit KeyPair(evp_pkey_st* key);

  std::shared_ptr<evp_pkey_st> key_;
  PublicKey public_key_;
};

}  // namespace gossamer::net
