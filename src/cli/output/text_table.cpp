#include "cli/output/text_table.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gossamer::cli {

void print_table(const std::vector<TableRow>& rows, const std::set<std::size_t>& left) {
  const auto width_of = [](const std::string& text) {
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
  };
  std::vector<std::size_t> widths(rows.front().size());
  for (const TableRow& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width_of(row[c]));
  for (const TableRow& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string pad(widths[c] - width_of(row[c]), ' ');
      line += (c == 0 ? "" : "  ") + (left.contains(c) ? row[c] + pad : pad + row[c]);
    }
    fmt::print("{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
  }
}

}  // namespace gossamer::cli
