// Splits lines of plain text into tokens, and parses tokens as numbers. Pure; any thread.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

namespace gossamer {

/// `text` as a number in C++'s notation (without '+'); none if any character is left over.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// Blanks and commas separate tokens.
constexpr bool is_separator(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == ',';
}

/// The parts of `line` between blanks and commas; views into `line`.
inline std::vector<std::string_view> tokens_of(std::string_view line) {
  std::vector<std::string_view> tokens;
  for (std::size_t at = 0; at < line.size();) {
    while (at < line.size() && is_separator(line[at])) ++at;
    const std::size_t begin = at;
    while (at < line.size() && !is_separator(line[at])) ++at;
    if (at > begin) tokens.push_back(line.substr(begin, at - begin));
  }
  return tokens;
}

}  // namespace gossamer
