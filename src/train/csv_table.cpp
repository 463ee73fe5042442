#include "train/csv_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace gossamer::train {
namespace {

/// The names of columns, which messages and logs repeat, and one of which data.target may be.
/// `line`: for messages.
Status check_names(const std::vector<std::string>& names, const std::string& line) {
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7F; };
  std::map<std::string_view, std::size_t> columns;
  for (std::size_t c = 0; c < names.size(); ++c) {
    if (std::ranges::any_of(names[c], is_control))
      return data_error(fmt::format(
          "{}: the name of column {} has a control character (a tab or a line end, for example): "
          "is it a text file, and are data.separator and the line ends right?",
          line, c + 1));
    const auto [same, is_new] = columns.emplace(names[c], c);
    if (!is_new)
      return data_error(
          fmt::format("{}: columns {} and {} have the same name, '{}': give each its own", line,
                      same->second + 1, c + 1, names[c]));
  }
  return {};
}

Result<CsvColumns> read_columns(const CsvOptions& options, const std::string& file,
                                const CsvRow& first) {
  CsvColumns columns{.count = first.fields.size()};
  const bool numbers = std::ranges::any_of(
      first.fields, [](const auto& field) { return finite_number(field).has_value(); });
  if (options.header == "yes" || (options.header == "auto" && !numbers))
    columns.names = first.fields;
  GOSSAMER_TRY_STATUS(check_names(columns.names, fmt::format("{}:{}", file, first.line)));
  if (columns.count < 2)
    return data_error(fmt::format(
        "{}:{}: one column, and a feature and a target are needed; is data.separator = {} right?",
        file, first.line, options.separator));
  const auto named = std::ranges::find(columns.names, options.target);
  if (named != columns.names.end()) {
    columns.target = static_cast<std::size_t>(named - columns.names.begin());
    return columns;
  }
  const auto number = finite_number(options.target);
  const auto last = static_cast<double>(columns.count);
  if (!number || *number != std::floor(*number) || *number == 0 || std::abs(*number) > last)
    return invalid_error(fmt::format(
        "data.target: '{}' is no column of {}: give {}a number from 1 to {}, or -1 for the last",
        options.target, file,
        columns.names.empty() ? "" : fmt::format("one of {}, ", fmt::join(columns.names, ", ")),
        columns.count));
  columns.target = static_cast<std::size_t>(*number > 0 ? *number - 1 : last + *number);
  return columns;
}

}  // namespace

std::string CsvColumns::name(std::size_t column) const {
  return names.empty() ? fmt::format("column {}", column + 1)
                       : fmt::format("column {} ({})", column + 1, names[column]);
}

std::vector<std::int32_t> class_numbers(const CsvOptions& options, const CsvTable& table) {
  std::vector<std::int32_t> number(table.classes.size());
  if (!options.class_names.empty()) {
    std::iota(number.begin(), number.end(), 0);
    return number;
  }
  std::vector<std::pair<std::string, std::int32_t>> order(table.classes.begin(),
                                                          table.classes.end());
  if (std::ranges::all_of(order,
                          [](const auto& each) { return finite_number(each.first).has_value(); }))
    std::ranges::stable_sort(order, {},
                             [](const auto& each) { return *finite_number(each.first); });
  for (std::size_t i = 0; i < order.size(); ++i)
    number[static_cast<std::size_t>(order[i].second)] = static_cast<std::int32_t>(i);
  return number;
}

CsvReader::CsvReader(const CsvOptions& options) : options_(options) {
  for (const std::string& name : options.class_names)
    table_.classes.emplace(name, static_cast<std::int32_t>(table_.classes.size()));
  frozen_ = !options.class_names.empty();
}

Status CsvReader::read(const std::string& file) {
  const char separator = options_.separator == "tab"         ? '\t'
                         : options_.separator == "semicolon" ? ';'
                                                             : ',';
  const std::size_t before = table_.count;
  bool first = true;
  GOSSAMER_TRY_STATUS(read_csv(file, separator, [&](const CsvRow& row) -> Status {
    if (!std::exchange(first, false)) return add(file, row);
    if (columns_.count == 0) {
      GOSSAMER_TRY(columns_, read_columns(options_, file, row));
      first_file_ = file;
      return columns_.names.empty() ? add(file, row) : Status();
    }
    if (columns_.names.empty()) return add(file, row);
    if (row.fields == columns_.names) return {};
    return data_error(fmt::format("{}:{}: its columns are {}, but {} has the columns {}", file,
                                  row.line, fmt::join(row.fields, ", "), first_file_,
                                  fmt::join(columns_.names, ", ")));
  }));
  if (table_.count == before) return data_error(fmt::format("{}: no samples in it", file));
  if (table_.count > std::numeric_limits<std::uint32_t>::max() ||
      columns_.count > std::numeric_limits<std::int32_t>::max())
    return data_error(
        fmt::format("{}: {} samples of {} features are more than this program can number", file,
                    table_.count, columns_.count - 1));
  return {};
}

Status CsvReader::add(const std::string& file, const CsvRow& row) {
  if (row.fields.size() != columns_.count)
    return data_error(fmt::format("{}:{}: {} fields, and the first line has {}", file, row.line,
                                  row.fields.size(), columns_.count));
  for (std::size_t c = 0; c < columns_.count; ++c) {
    const std::string& field = row.fields[c];
    if (field.empty())
      return data_error(
          fmt::format("{}:{}: {} is empty: fill in what is missing, or leave the line out", file,
                      row.line, columns_.name(c)));
    if (c == columns_.target && options_.task == "classification") {
      GOSSAMER_TRY_STATUS(add_label(file, row.line, field));
      continue;
    }
    const auto number = finite_number(field);
    if (!number || !std::isfinite(static_cast<float>(*number)))
      return data_error(fmt::format("{}:{}: {}: '{}' is not a number that a float can hold", file,
                                    row.line, columns_.name(c), field));
    if (c == columns_.target) table_.targets.push_back(static_cast<float>(*number));
    else table_.features.push_back(*number);
  }
  ++table_.count;
  return {};
}

Status CsvReader::add_label(const std::string& file, std::size_t line, const std::string& text) {
  const auto next = static_cast<std::int32_t>(table_.classes.size());
  const auto found = frozen_ ? table_.classes.find(text) : table_.classes.emplace(text, next).first;
  if (found == table_.classes.end())
    return data_error(fmt::format(
        "{}:{}: {}: class '{}' is not {}", file, line, columns_.name(columns_.target), text,
        options_.class_names.empty()
            ? fmt::format("in {}, so no model could learn it", first_file_)
            : fmt::format("in data.class_names: {}", fmt::join(options_.class_names, ", "))));
  table_.labels.push_back(found->second);
  return {};
}

}  // namespace gossamer::train
