// A table of numbers from a text file (csv_file.hpp): one column is the target or the label, the
// others are the features.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <span>
#include <utility>

#include "base/philox.hpp"
#include "train/csv_file.hpp"
#include "train/dataset.hpp"

namespace gossamer::train::datasets::csv {
namespace {

struct CsvOptions {
  std::string path, test_path, target = "-1", task = "classification", header = "auto",
                               separator = "comma";
  double test_fraction = 0.2;
  std::uint64_t split_seed = 0;
  bool standardise = true;
};

const ParameterSet<CsvOptions>& parameters() {
  static const ParameterSet<CsvOptions> set =
      ParameterSet<CsvOptions>()
          .add("path", &CsvOptions::path,
               {.help = "the file of the training samples, or of all samples",
                .path = true,
                .local = true})
          .add("test_path", &CsvOptions::test_path,
               {.help = "a file of test samples with the same columns; empty: test_fraction of the "
                        "only file",
                .path = true,
                .local = true})
          .add("target", &CsvOptions::target,
               {.help =
                    "the column to predict: its name, or its number (the first is 1, the last -1)"})
          .add("task", &CsvOptions::task,
               {.help = "classification: each distinct text of the target is a class, in ascending "
                        "order",
                .choices = {"classification", "regression"}})
          .add("header", &CsvOptions::header,
               {.help = "whether the first line names the columns; auto: yes if none of its fields "
                        "is a number",
                .choices = {"auto", "yes", "no"}})
          .add("separator", &CsvOptions::separator,
               {.help = "between two fields", .choices = {"comma", "semicolon", "tab"}})
          .add("test_fraction", &CsvOptions::test_fraction,
               {.help = "fraction of a single file that is used for testing, chosen at random by "
                        "split_seed",
                .minimum = 0,
                .maximum = 0.99})
          .add("split_seed", &CsvOptions::split_seed,
               {.help = "seed of the choice of test samples; independent of run.seed, so that runs "
                        "with other seeds have the same test samples",
                .minimum = 0})
          .add("standardise", &CsvOptions::standardise,
               {.help = "each feature becomes (x − mean) / standard deviation, both of the "
                        "training samples; a constant feature becomes 0"});
  return set;
}

/// The columns, from the first line, and which of them is the target.
struct Columns {
  std::size_t count = 0, target = 0;
  std::vector<std::string> names = {};  ///< empty: the file has no header

  std::string name(std::size_t column) const {
    return names.empty() ? fmt::format("column {}", column + 1)
                         : fmt::format("column {} ({})", column + 1, names[column]);
  }
};

/// Samples as they stand in the files; labels are numbered as they first appear.
struct Table {
  std::vector<double> features;  ///< [count, columns − 1]; in double, so that standardising loses
                                 ///< no digits to large offsets
  std::vector<float> targets;
  std::vector<std::int32_t> labels;
  std::map<std::string, std::int32_t> classes;
  std::size_t count = 0;
};

Result<Columns> read_columns(const CsvOptions& options, const std::string& file,
                             const CsvRow& first) {
  Columns columns{.count = first.fields.size()};
  const bool numbers = std::ranges::any_of(
      first.fields, [](const auto& field) { return finite_number(field).has_value(); });
  if (options.header == "yes" || (options.header == "auto" && !numbers))
    columns.names = first.fields;
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

/// Reads one file after the other into one table; the first file defines the columns.
class Reader {
 public:
  explicit Reader(const CsvOptions& options) : options_(options) {}

  Status read(const std::string& file) {
    const char separator = options_.separator == "tab"         ? '\t'
                           : options_.separator == "semicolon" ? ';'
                                                               : ',';
    const std::size_t before = table_.count;
    bool first = true;
    GOSSAMER_TRY_STATUS(read_csv(file, separator, [&](const CsvRow& row) -> Status {
      if (!std::exchange(first, false)) return add(file, row);
      if (columns_.count == 0) {
        GOSSAMER_TRY(columns_, read_columns(options_, file, row));
        return columns_.names.empty() ? add(file, row) : Status();
      }
      if (columns_.names.empty()) return add(file, row);
      if (row.fields == columns_.names) return {};
      return data_error(fmt::format("{}:{}: its columns are {}, but {} has the columns {}", file,
                                    row.line, fmt::join(row.fields, ", "), options_.path,
                                    fmt::join(columns_.names, ", ")));
    }));
    if (table_.count == before) return data_error(fmt::format("{}: no samples in it", file));
    frozen_ = true;
    return {};
  }

  const Table& table() const { return table_; }
  const Columns& columns() const { return columns_; }

 private:
  Status add(const std::string& file, const CsvRow& row) {
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

  Status add_label(const std::string& file, std::size_t line, const std::string& text) {
    const auto next = static_cast<std::int32_t>(table_.classes.size());
    const auto found =
        frozen_ ? table_.classes.find(text) : table_.classes.emplace(text, next).first;
    if (found == table_.classes.end())
      return data_error(
          fmt::format("{}:{}: {}: class '{}' is not in {}, so no model could learn it", file, line,
                      columns_.name(columns_.target), text, options_.path));
    table_.labels.push_back(found->second);
    return {};
  }

  const CsvOptions& options_;
  Columns columns_;
  Table table_;
  bool frozen_ = false;  // the training file has been read, so no class is added
};

/// The final number of each class, by its first number: classes ascend as numbers if all are
/// numbers, otherwise as texts.
std::vector<std::int32_t> ascending(const std::map<std::string, std::int32_t>& classes) {
  std::vector<std::pair<std::string, std::int32_t>> order(classes.begin(), classes.end());
  if (std::ranges::all_of(order,
                          [](const auto& each) { return finite_number(each.first).has_value(); }))
    std::ranges::stable_sort(order, {},
                             [](const auto& each) { return *finite_number(each.first); });
  std::vector<std::int32_t> number(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    number[static_cast<std::size_t>(order[i].second)] = static_cast<std::int32_t>(i);
  return number;
}

/// Samples in the data set's order: the training samples and then the test samples, each in the
/// order of the file.
Result<std::vector<std::size_t>> split(const CsvOptions& options, std::size_t count,
                                       std::size_t& train_count) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  if (options.test_path.empty()) {
    const auto tests =
        static_cast<std::size_t>(std::llround(options.test_fraction * static_cast<double>(count)));
    if (tests >= count)
      return invalid_error(
          fmt::format("data.test_fraction: {} of the {} samples of {} would test, and none train",
                      tests, count, options.path));
    RandomStream(options.split_seed, kNoPeer, Purpose::data).shuffle(order);
    train_count = count - tests;
    std::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(train_count));
    std::sort(order.begin() + static_cast<std::ptrdiff_t>(train_count), order.end());
  }
  return std::vector<std::size_t>(order.begin(), order.end());
}

/// The numbers by which a feature is shifted and divided.
struct Scale {
  double mean = 0, deviation = 1;
};

/// Mean and standard deviation of feature f over `samples`, in double, in their order.
Scale scale_of(const Table& table, std::size_t width, std::size_t f,
               std::span<const std::size_t> samples) {
  const auto at = [&](std::size_t sample) { return table.features[sample * width + f]; };
  const auto n = static_cast<double>(samples.size());
  double mean = 0, square = 0;
  for (const std::size_t i : samples) mean += at(i) / n;
  for (const std::size_t i : samples) square += (at(i) - mean) * (at(i) - mean) / n;
  const bool constant =
      std::ranges::all_of(samples, [&](std::size_t i) { return at(i) == at(samples[0]); });
  return {mean, constant ? std::numeric_limits<double>::infinity() : std::sqrt(square)};
}

/// The samples of `order`, the first `train_count` of which train.
Dataset assemble(const CsvOptions& options, const Table& table, const Columns& columns,
                 const std::vector<std::size_t>& order, std::size_t train_count) {
  const std::size_t width = columns.count - 1;
  Dataset data;
  data.name = "csv";
  data.width = static_cast<int>(width);
  data.classes = static_cast<int>(table.classes.size());
  data.count = table.count;
  data.train_count = train_count;
  std::vector<Scale> scales(width);
  for (std::size_t f = 0; options.standardise && f < width; ++f)
    scales[f] = scale_of(table, width, f, std::span(order).first(train_count));
  const std::vector<std::int32_t> number = ascending(table.classes);
  data.features.reserve(table.features.size());
  for (const std::size_t i : order) {
    for (std::size_t f = 0; f < width; ++f)
      data.features.push_back(static_cast<float>((table.features[i * width + f] - scales[f].mean) /
                                                 scales[f].deviation));
    if (data.classes > 0) data.labels.push_back(number[static_cast<std::size_t>(table.labels[i])]);
    else data.targets.push_back(table.targets[i]);
  }
  return data;
}

Result<Dataset> make(const DatasetContext&, const ParameterValues& values) {
  GOSSAMER_TRY(const CsvOptions options, parameters().read("data", values));
  if (options.path.empty()) return invalid_error("data.path: give the file with the samples");
  Reader reader(options);
  GOSSAMER_TRY_STATUS(reader.read(options.path));
  std::size_t train_count = reader.table().count;
  if (!options.test_path.empty()) GOSSAMER_TRY_STATUS(reader.read(options.test_path));
  const Table& table = reader.table();
  const std::size_t width = reader.columns().count - 1;
  if (table.count > std::numeric_limits<std::uint32_t>::max() ||
      width > std::numeric_limits<std::int32_t>::max())
    return data_error(
        fmt::format("{}: {} samples of {} features are more than this program can number",
                    options.path, table.count, width));
  if (table.classes.size() * 2 > table.count)
    return invalid_error(fmt::format(
        "data.task: {} of {} has {} distinct values in {} samples, too many for classes; is it a "
        "regression?",
        reader.columns().name(reader.columns().target), options.path, table.classes.size(),
        table.count));

  GOSSAMER_TRY(const std::vector<std::size_t> order, split(options, table.count, train_count));
  return assemble(options, table, reader.columns(), order, train_count);
}

}  // namespace

DatasetKind descriptor() {
  return {
      .name = "csv",
      .summary =
          "a table of numbers from a text file; one column is the class or the value to predict",
      .source = "your file, its licence; format: RFC 4180, Y. Shafranovich 2005",
      .parameters = parameters().specs(),
      .make = make};
}

}  // namespace gossamer::train::datasets::csv
