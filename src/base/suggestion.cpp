#include "base/suggestion.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>

namespace gossamer {
namespace {

/// Edits between two words, where a swap of neighbouring letters is one: the distance of optimal
/// string alignment (F. J. Damerau 1964, Communications of the ACM 7).
std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> older(b.size() + 1), previous(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    older.swap(previous);
    previous.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({previous[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], older[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest_name(std::string_view word, const std::vector<std::string>& names) {
  constexpr std::size_t kLongest = 64;  // of a mistyped name
  if (word.empty() || word.size() > kLongest) return {};
  std::size_t fewest = std::max<std::size_t>(1, word.size() / 3) + 1;
  std::string nearest;
  for (const std::string& name : names)
    if (const std::size_t count = edits(word, name); count < fewest) {
      fewest = count;
      nearest = name;
    }
  return nearest;
}

std::string known_names(std::string_view word, const std::vector<std::string>& names) {
  const std::string nearest = nearest_name(word, names);
  return fmt::format("{}; there are: {}",
                     nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest),
                     fmt::join(names, ", "));
}

}  // namespace gossamer
