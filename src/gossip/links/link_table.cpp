#include "gossip/links/link_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "base/tokens.hpp"

namespace gossamer::gossip {
namespace {

constexpr double kMost = 1e9;
constexpr std::size_t kMostRegions = 16384;  // whose table has 2 GiB

Error wrong(const std::string& name, int line, const std::string& what) {
  return {ErrorKind::data, fmt::format("{}:{}: {}", name, line, what)};
}

}  // namespace

LinkTable::LinkTable(int regions, std::vector<double> values)
    : regions_(regions), values_(std::move(values)) {
  GOSSAMER_CHECK(
      values_.size() == static_cast<std::size_t>(regions) * static_cast<std::size_t>(regions),
      "a table of links that is not square");
}

Result<LinkTable> LinkTable::parse(std::string_view text, const std::string& name) {
  LinkTable table;
  std::size_t width = 0;
  int line = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view content = text.substr(begin, end - begin);
    begin = end + 1;
    ++line;
    const auto words = tokens_of(content.substr(0, content.find('#')));
    if (words.empty()) continue;
    if (width == 0) width = words.size();
    if (width > kMostRegions)
      return wrong(name, line,
                   fmt::format("{} numbers; a table has at most {}", width, kMostRegions));
    if (words.size() != width)
      return wrong(name, line,
                   fmt::format("{} numbers where the first line has {}", words.size(), width));
    if (table.values_.size() == width * width)
      return wrong(
          name, line,
          fmt::format("a line too many: a table of {} columns has {} lines", width, width));
    for (std::string_view word : words) {
      const auto value = number_in<double>(word);
      if (!value || !(*value >= 0 && *value <= kMost))
        return wrong(name, line, fmt::format("'{}' is not a number from 0 to {:g}", word, kMost));
      table.values_.push_back(*value);
    }
  }
  if (width == 0) return wrong(name, std::max(line, 1), "no number in the whole file");
  if (table.values_.size() < width * width)
    return wrong(
        name, line,
        fmt::format("the end after {} lines of numbers: a table of {} columns has {} lines",
                    table.values_.size() / width, width, width));
  table.regions_ = static_cast<int>(width);
  return table;
}

}  // namespace gossamer::gossip
