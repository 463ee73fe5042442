#include "peer/config/toml_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "peer/storage/files.hpp"

namespace gossamer::peer {
namespace {

constexpr std::uintmax_t kMaxConfigBytes = 2 << 20;  // typical: a few hundred
constexpr std::size_t kMaxKeyDots = 64;              // a key of ours has one

/// The first line with a key of absurdly many parts, or 0. The parser makes a table for each part,
/// and their number bounds its stack; it bounds the depth of values itself.
std::size_t line_of_deep_key(std::string_view text) {
  std::size_t line = 1, dots = 0;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote == 0 && c == '#') i = std::min(text.find('\n', i), text.size()) - 1;
    else if (c == '\n') ++line, dots = 0, quote = 0;  // strings of several lines hold no key
    else if (quote == '"' && c == '\\') ++i;
    else if (quote != 0) quote = c == quote ? char{0} : quote;
    else if (c == '"' || c == '\'') quote = c;
    else if (c == '=' || c == ',' || c == '[' || c == '{') dots = 0;
    else if (c == '.' && ++dots > kMaxKeyDots) return line;
  }
  return 0;
}

}  // namespace

Result<toml::table> read_toml_file(const std::string& path) {
  GOSSAMER_TRY(const std::string content, read_file(path, kMaxConfigBytes));
  if (const std::size_t line = line_of_deep_key(content); line > 0)
    return invalid_error(
        fmt::format("{}:{}: a key of more than {} parts", path, line, kMaxKeyDots));
  try {
    return toml::parse(content, path);
  } catch (const toml::parse_error& error) {
    return invalid_error(
        fmt::format("{}:{}: not TOML: {}", path, error.source().begin.line, error.description()));
  }
}

std::string place_of(const std::string& path, const toml::node& node) {
  return fmt::format("{}:{}", path, node.source().begin.line);
}

}  // namespace gossamer::peer
