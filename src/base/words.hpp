// Lines of plain text files, taken apart: words between blanks and commas, and the numbers that
// they are.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

namespace gossamer {

/// The number that all of `text` is, written as C++ writes it (no '+').
template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

constexpr bool parts_words(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == ',';
}

inline std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at < line.size();) {
    while (at < line.size() && parts_words(line[at])) ++at;
    const std::size_t begin = at;
    while (at < line.size() && !parts_words(line[at])) ++at;
    if (at > begin) words.push_back(line.substr(begin, at - begin));
  }
  return words;
}

}  // namespace gossamer
