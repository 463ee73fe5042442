// A table of numbers from a text file (csv_file.hpp): one column is the target or the label, the
// others are the features.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/philox.hpp"
#include "train/csv_table.hpp"
#include "train/dataset.hpp"

namespace gossamer::train::datasets::csv {
namespace {

const ParameterSet<CsvOptions>& parameters() {
  static const ParameterSet<CsvOptions> set =
      ParameterSet<CsvOptions>()
          .add(
              "path", &CsvOptions::path,
              {.help = "the file of the training samples, or of all samples; with data.partition = "
                       "own, {peer} stands for the peer's id",
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
          .add(
              "class_names", &CsvOptions::class_names,
              {.help = "classification: the classes in the order of their numbers; empty: those of "
                       "the file. With data.partition = own, all peers need the same names"})
          .add("header", &CsvOptions::header,
               {.help = "whether the first line names the columns; auto: yes if none of its fields "
                        "is a number",
                .choices = {"auto", "yes", "no"}})
          .add("separator", &CsvOptions::separator,
               {.help = "between two fields", .choices = {"comma", "semicolon", "tab"}})
          .add("test_fraction", &CsvOptions::test_fraction,
               {.help = "fraction of a single file that is used for testing, chosen at random by "
                        "split_seed; 0: there is no test sample, and test loss and accuracy are "
                        "those of all training samples",
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

/// The training and test samples of the table, and the number of training samples of each file.
struct Samples {
  std::vector<std::size_t> train, test;
  std::vector<std::size_t> sizes;  ///< in `train`: the number of samples of each file
};

/// Divides the samples [begin, end) of one file by test_fraction, each part in the order of the
/// file. `peer` has them, or kNoPeer.
Status split(const CsvOptions& options, const std::string& file, std::uint32_t peer,
             std::size_t begin, std::size_t end, Samples& samples) {
  std::vector<std::uint32_t> order(end - begin);
  std::iota(order.begin(), order.end(), static_cast<std::uint32_t>(begin));
  std::size_t tests = 0;
  if (options.test_path.empty()) {
    const auto count = static_cast<double>(order.size());
    tests = static_cast<std::size_t>(std::llround(options.test_fraction * count));
    if (tests >= order.size())
      return invalid_error(
          fmt::format("data.test_fraction: {} of the {} samples of {} would test, and none train",
                      tests, order.size(), file));
    RandomStream(options.split_seed, peer, Purpose::data).shuffle(order);
  }
  const auto trains = order.begin() + static_cast<std::ptrdiff_t>(order.size() - tests);
  std::sort(order.begin(), trains);
  std::sort(trains, order.end());
  samples.train.insert(samples.train.end(), order.begin(), trains);
  samples.test.insert(samples.test.end(), trains, order.end());
  samples.sizes.push_back(order.size() - tests);
  return {};
}

/// Reads the training files, of each peer that is hosted or of all peers, and the test files.
Result<Samples> read_samples(const CsvOptions& options, const DatasetContext& context,
                             CsvReader& reader) {
  Samples samples;
  std::set<std::string> test_files;
  if (!context.own) test_files.insert(options.test_path);
  for (const int peer : context.own ? context.hosted : std::vector<int>{0}) {
    const std::string file = context.own ? file_of_peer(options.path, peer) : options.path;
    const std::size_t before = reader.table().count;
    GOSSAMER_TRY_STATUS(reader.read(file));
    GOSSAMER_TRY_STATUS(split(options, file,
                              context.own ? static_cast<std::uint32_t>(peer) : kNoPeer, before,
                              reader.table().count, samples));
    if (context.own) test_files.insert(file_of_peer(options.test_path, peer));
  }
  if (test_files.empty()) test_files.insert(options.test_path);
  reader.freeze_classes();
  for (const std::string& file : test_files) {
    if (file.empty()) continue;
    const std::size_t before = reader.table().count;
    GOSSAMER_TRY_STATUS(reader.read(file));
    for (std::size_t i = before; i < reader.table().count; ++i) samples.test.push_back(i);
  }
  return samples;
}

std::string description_of(const CsvColumns& columns) {
  return columns.names.empty() ? fmt::format("{} columns", columns.count)
                               : fmt::format("columns {}", fmt::join(columns.names, ", "));
}

Dataset assemble(const CsvOptions& options, const DatasetContext& context, const CsvTable& table,
                 const CsvColumns& columns, const Samples& samples) {
  const std::size_t width = columns.count - 1;
  Dataset data;
  data.name = "csv";
  data.width = static_cast<int>(width);
  data.classes = static_cast<int>(table.classes.size());
  data.count = table.count;
  data.train_count = samples.train.size();
  const std::vector<std::int32_t> number = class_numbers(options, table);
  data.unscaled.reserve(table.features.size());
  for (const auto* part : {&samples.train, &samples.test})
    for (const std::size_t i : *part) {
      const auto row = table.features.begin() + static_cast<std::ptrdiff_t>(i * width);
      data.unscaled.insert(data.unscaled.end(), row, row + static_cast<std::ptrdiff_t>(width));
      if (data.classes > 0)
        data.labels.push_back(number[static_cast<std::size_t>(table.labels[i])]);
      else data.targets.push_back(table.targets[i]);
    }
  if (context.own) {
    data.sample_description = description_of(columns);
    give_to_peers(data, context, samples.sizes);
  }
  if (!options.standardise) {
    data.features.assign(data.unscaled.begin(), data.unscaled.end());
    data.unscaled = {};
  }
  return data;
}

Status check_options(const CsvOptions& options, const DatasetContext& context) {
  if (options.path.empty()) return invalid_error("data.path: give the file with the samples");
  const std::set<std::string> names(options.class_names.begin(), options.class_names.end());
  if (names.size() < options.class_names.size())
    return invalid_error("data.class_names: a class stands there twice");
  if (options.task == "regression" && !names.empty())
    return invalid_error("data.class_names: a regression has no classes; leave the names out");
  if (!context.own) return {};
  GOSSAMER_TRY_STATUS(check_file_of_peer("data.path", options.path, context.hosted.size()));
  if (context.hosted.empty() && options.test_path.empty())
    return invalid_error(
        "data.test_path: a process of servers has no samples to train on (data.partition = own); "
        "give it a file of test samples");
  return {};
}

/// With own data, peers would number classes differently unless class_names gives the order.
Status check_classes(const CsvOptions& options, const DatasetContext& context,
                     const CsvReader& reader) {
  const CsvTable& table = reader.table();
  if (table.classes.size() * 2 > table.count && options.class_names.empty())
    return invalid_error(fmt::format(
        "data.task: {} of {} has {} distinct values in {} samples, too many for classes; to "
        "predict a number set data.task = \"regression\" and model.kind = \"linear\", and if they "
        "are "
        "classes name them in data.class_names",
        reader.columns().name(reader.columns().target), options.path, table.classes.size(),
        table.count));
  if (!context.own || options.task == "regression" || !options.class_names.empty()) return {};
  constexpr std::size_t kShown = 20;
  std::vector<std::string> found;
  for (const auto& [name, number] : table.classes)
    if (found.size() < kShown) found.push_back("\"" + name + "\"");
  return invalid_error(fmt::format(
      "data.class_names: no process sees the samples of all peers (data.partition = own), so name "
      "all classes, in one order for all; the files here have {}{}",
      fmt::join(found, ", "), table.classes.size() > kShown ? " and others" : ""));
}

Result<Dataset> make(const DatasetContext& context, const ParameterValues& values) {
  GOSSAMER_TRY(const CsvOptions options, parameters().read("data", values));
  GOSSAMER_TRY_STATUS(check_options(options, context));
  CsvReader reader(options);
  GOSSAMER_TRY(const Samples samples, read_samples(options, context, reader));
  GOSSAMER_TRY_STATUS(check_classes(options, context, reader));
  return assemble(options, context, reader.table(), reader.columns(), samples);
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
