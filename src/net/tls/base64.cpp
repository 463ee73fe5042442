#include "net/tls/base64.hpp"

#include <openssl/evp.h>

namespace gossamer::net {

std::string encode_base64(std::span<const std::byte> bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');  // with the end of a C string
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                  reinterpret_cast<const unsigned char*>(bytes.data()),
                  static_cast<int>(bytes.size()));
  text.pop_back();
  return text;
}

std::optional<std::vector<std::byte>> decode_base64(std::string_view text) {
  constexpr std::size_t kMost = 1 << 20;
  if (text.size() % 4 != 0 || text.size() > kMost) return std::nullopt;
  std::vector<std::byte> bytes(text.size() / 4 * 3);
  const int decoded = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                                      reinterpret_cast<const unsigned char*>(text.data()),
                                      static_cast<int>(text.size()));
  if (decoded != static_cast<int>(bytes.size())) return std::nullopt;
  bytes.resize(bytes.size() - (text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0));
  // The decoder takes blanks at the ends, padding anywhere, and bits that no byte has.
  if (encode_base64(bytes) != text) return std::nullopt;
  return bytes;
}

}  // namespace gossamer::net
