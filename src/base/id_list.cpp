#include "base/id_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "base/printable.hpp"

namespace gossamer {
namespace {

bool read_id(std::string_view text, int& id) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), id);
  return failure == std::errc() && end == text.data() + text.size() && id >= 0 && id <= kLargestId;
}

/// "0-2, 4-6": spaces around an item are nothing.
std::string_view without_spaces(std::string_view item) {
  const std::size_t first = item.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return item.substr(first, item.find_last_not_of(' ') + 1 - first);
}

/// Ids in their shortest form, with `separator` between two.
std::string listed(const std::vector<int>& ids, std::string_view separator) {
  std::string text;
  for (std::size_t begin = 0; begin < ids.size();) {
    std::size_t end = begin + 1;
    while (end < ids.size() && ids[end] == ids[end - 1] + 1) ++end;
    text += fmt::format("{}{}", begin == 0 ? "" : separator, ids[begin]);
    if (end - begin > 1)
      text += fmt::format("{}{}", end - begin > 2 ? "-" : separator, ids[end - 1]);
    begin = end;
  }
  return text;
}

}  // namespace

Result<std::vector<int>> parse_ids(std::string_view text, const std::string& origin) {
  const Error error = invalid_error(
      fmt::format("{}: '{}' is not a peer id; use the form 3, 0,1 or 0-3", origin, excerpt(text)));
  std::vector<int> ids;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view item = without_spaces(text.substr(begin, end - begin));
    const std::size_t dash = item.find('-');
    int first = 0, last = 0;
    if (!read_id(item.substr(0, dash), first)) return error;
    last = first;
    if (dash != std::string_view::npos && (!read_id(item.substr(dash + 1), last) || last < first))
      return error;
    for (int id = first; id <= last; ++id) ids.push_back(id);
    begin = end + 1;
  }
  std::ranges::sort(ids);
  if (const auto twice = std::ranges::adjacent_find(ids); twice != ids.end())
    return invalid_error(
        fmt::format("{}: '{}' names peer {} twice", origin, excerpt(text), *twice));
  return ids;
}

std::vector<int> first_ids(int count) {
  std::vector<int> ids(static_cast<std::size_t>(count));
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

std::string ids_text(const std::vector<int>& ids) { return listed(ids, ","); }

std::string peers_text(const std::vector<int>& ids) {
  return (ids.size() == 1 ? "peer " : "peers ") + listed(ids, ", ");
}

}  // namespace gossamer
