#include "base/toml_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/input_file.hpp"

namespace gossamer {
namespace {

constexpr std::size_t kMaxKeyDots = 64;  // a key of ours has one

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
  GOSSAMER_TRY(const std::string content, read_file(path, kMaxTomlBytes));
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

Result<ParameterValue> parameter_value(const toml::node& node) {
  if (const auto* value = node.as_boolean()) return ParameterValue(value->get());
  if (const auto* value = node.as_integer()) return ParameterValue(value->get());
  if (const auto* value = node.as_floating_point()) return ParameterValue(value->get());
  if (const auto* value = node.as_string()) return ParameterValue(value->get());
  if (const auto* array = node.as_array()) {
    std::vector<std::int64_t> integers;
    std::vector<std::string> texts;
    for (const toml::node& item : *array) {
      if (const auto* integer = item.as_integer()) integers.push_back(integer->get());
      else if (const auto* text = item.as_string()) texts.push_back(text->get());
    }
    if (integers.size() == array->size()) return ParameterValue(std::move(integers));
    if (texts.size() == array->size()) return ParameterValue(std::move(texts));
    return invalid_error("a list contains either integers or texts");
  }
  return invalid_error("this is not a boolean, a number, a text or a list");
}

}  // namespace gossamer
