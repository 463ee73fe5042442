#include "base/printable.hpp"

#include <array>
#include <cstddef>

namespace gossamer {
namespace {

struct Decoded {
  std::size_t bytes = 0;  ///< 0: these bytes are no UTF-8
  char32_t character = 0;
};

/// The character at the start of `text`, which is not empty (RFC 3629).
Decoded decode(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  if (first < 0x80) return {1, first};
  const std::size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < bytes) return {};
  char32_t character = first & (0xFFU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xC0) != 0x80) return {};
    character = character << 6 | (next & 0x3F);
  }
  constexpr std::array<char32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = character >= 0xD800 && character <= 0xDFFF;
  if (character < kLeast[bytes] || surrogate || character > 0x10FFFF) return {};
  return {bytes, character};
}

bool is_control(char32_t character) {
  const bool direction =  // of text: marks that make a terminal show words in another order
      (character >= 0x202A && character <= 0x202E) || (character >= 0x2066 && character <= 0x2069);
  return (character < 0x20 && character != '\n') || (character >= 0x7F && character < 0xA0) ||
         direction;
}

/// Of a character in UTF-8.
bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

/// The whole characters in the first `bytes` of a longer text.
std::string_view first_characters(std::string_view text, std::size_t bytes) {
  while (bytes > 0 && !begins_character(text[bytes])) --bytes;
  return text.substr(0, bytes);
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const auto [bytes, character] = decode(text);
    if (bytes == 0 || is_control(character)) result += '?';
    else result += text.substr(0, bytes);
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return result;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t bytes = decode(text).bytes;
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

std::string excerpt(std::string_view text) {
  constexpr std::size_t kMost = 60;
  if (text.size() <= kMost) return std::string(text);
  std::string cut(first_characters(text, kMost));
  cut += "…";
  return cut;
}

std::string abridged(std::string_view message) {
  constexpr std::size_t kMost = 4096, kFirst = 3072, kLast = 500;
  if (message.size() <= kMost) return std::string(message);
  std::size_t last = message.size() - kLast;
  while (last < message.size() && !begins_character(message[last])) ++last;
  std::string cut(first_characters(message, kFirst));
  cut += "…";
  cut += message.substr(last);
  return cut;
}

std::string xml_text(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '&') safe += "&amp;";
    else if (c == '<') safe += "&lt;";
    else safe += c;
  }
  return safe;
}

}  // namespace gossamer
