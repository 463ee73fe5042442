#include "net/tls/keys.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/pem.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "base/descriptor.hpp"
#include "base/input_file.hpp"
#include "net/tls/base64.hpp"
#include "net/tls/openssl.hpp"

namespace gossamer::net {

namespace {

constexpr std::size_t kMaxKeyFileBytes = 4096;  // a key takes 119

/// The text of a private key, erased from memory at the end.
struct SecretText {
  ~SecretText() { OPENSSL_cleanse(bytes.data(), bytes.size()); }

  std::array<char, kMaxKeyFileBytes> bytes{};
  std::size_t size = 0;
};

/// A file with a passphrase is refused: nothing here may ask for one.
int no_passphrase(char*, int, int, void*) { return -1; }

Error no_key(const std::filesystem::path& path) {
  return data_error(
      fmt::format("{} holds no Ed25519 private key (PEM, without a passphrase): make one with "
                  "gossamer keygen FILE",
                  path.string()));
}

/// Checks the open file, so that it cannot be another one by the time it is read.
Status read_secret(const std::filesystem::path& path, SecretText& text) {
  // O_NONBLOCK: a pipe without a writer would hold the caller for ever.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status{};
  if (!file.is_open() || ::fstat(file.get(), &status) != 0) return file_error("read", path, errno);
  if (!S_ISREG(status.st_mode)) return no_key(path);
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return data_error(
        fmt::format("{} holds a private key, and other users may read or change it (mode {:04o}): "
                    "run chmod 600 on it, or make a new key if it may be known",
                    path.string(), status.st_mode & 07777u));
  while (text.size < text.bytes.size()) {
    const ssize_t count =
        ::read(file.get(), text.bytes.data() + text.size, text.bytes.size() - text.size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_error("read", path, errno);
    if (count == 0) return {};
    text.size += static_cast<std::size_t>(count);
  }
  return no_key(path);
}

Status write_all(int file, const char* data, std::size_t size, const std::filesystem::path& path) {
  while (size > 0) {
    const ssize_t count = ::write(file, data, size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_error("write", path, errno);
    data += count;
    size -= static_cast<std::size_t>(count);
  }
  return ::fsync(file) == 0 ? Status() : Status(file_error("write", path, errno));
}

}  // namespace

std::string to_string(const PublicKey& key) {
  return encode_base64(std::as_bytes(std::span(key.bytes)));
}

Result<PublicKey> parse_public_key(const std::string& text) {
  const auto bytes = decode_base64(text);
  if (PublicKey key; bytes && bytes->size() == key.bytes.size()) {
    std::memcpy(key.bytes.data(), bytes->data(), bytes->size());
    return key;
  }
  return invalid_error(
      fmt::format("'{}' is no public key: it is 44 characters of base64, which gossamer keygen "
                  "--show FILE prints",
                  text.substr(0, 64)));
}

KeyPair::KeyPair(evp_pkey_st* key) : key_(key, EVP_PKEY_free) {
  std::size_t size = public_key_.bytes.size();
  openssl::require(EVP_PKEY_get_raw_public_key(key, public_key_.bytes.data(), &size));
}

KeyPair KeyPair::generate() {
  return KeyPair(openssl::made(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519")));
}

Result<KeyPair> KeyPair::load(const std::filesystem::path& path) {
  SecretText text;
  GOSSAMER_TRY_STATUS(read_secret(path, text));
  ERR_clear_error();
  const openssl::Bio bio(
      openssl::made(BIO_new_mem_buf(text.bytes.data(), static_cast<int>(text.size))));
  openssl::Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr));
  ERR_clear_error();
  if (!key || EVP_PKEY_get_id(key.get()) != EVP_PKEY_ED25519) return no_key(path);
  return KeyPair(key.release());
}

Signature KeyPair::sign(std::string_view text) const {
  const openssl::Digest digest(openssl::made(EVP_MD_CTX_new()));
  openssl::require(EVP_DigestSignInit(digest.get(), nullptr, nullptr, nullptr, key_.get()));
  Signature signature{};
  std::size_t size = signature.size();
  openssl::require(EVP_DigestSign(digest.get(), signature.data(), &size,
                                  reinterpret_cast<const unsigned char*>(text.data()),
                                  text.size()));
  return signature;
}

bool has_signed(const PublicKey& key, std::string_view text, const Signature& signature) {
  const openssl::Key loaded(
      EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, key.bytes.data(), key.bytes.size()));
  const openssl::Digest digest(openssl::made(EVP_MD_CTX_new()));
  const bool valid =
      loaded && EVP_DigestVerifyInit(digest.get(), nullptr, nullptr, nullptr, loaded.get()) == 1 &&
      EVP_DigestVerify(digest.get(), signature.data(), signature.size(),
                       reinterpret_cast<const unsigned char*>(text.data()), text.size()) == 1;
  ERR_clear_error();
  return valid;
}

Status KeyPair::save(const std::filesystem::path& path) const {
  const openssl::Bio bio(openssl::made(BIO_new(BIO_s_secmem())));
  openssl::require(
      PEM_write_bio_PKCS8PrivateKey(bio.get(), key_.get(), nullptr, nullptr, 0, nullptr, nullptr));
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);

  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.is_open() && errno == EEXIST)
    return data_error(
        fmt::format("{} exists already, and a key is never overwritten: give another name, or show "
                    "its public key with gossamer keygen --show",
                    path.string()));
  if (!file.is_open()) return file_error("write", path, errno);
  const Status written = write_all(file.get(), data, static_cast<std::size_t>(size), path);
  if (!written.ok()) ::unlink(path.c_str());
  return written;
}

}  // namespace gossamer::net
