// The samples of a data set of kind csv, as they stand in its files: one column is the class or the
// value to predict, the others are the features.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "train/csv_file.hpp"

namespace gossamer::train {

/// The keys of [data] for kind csv (train/datasets/csv.cpp has their meaning).
struct CsvOptions {
  std::string path, test_path, target = "-1", task = "classification", header = "auto",
                               separator = "comma";
  std::vector<std::string> class_names;
  double test_fraction = 0.2;
  std::uint64_t split_seed = 0;
  bool standardise = true;
};

/// The columns of the files, and which of them is the target, from 0.
struct CsvColumns {
  std::size_t count = 0, target = 0;
  std::vector<std::string> names = {};  ///< empty: the file has no header

  /// For messages.
  std::string name(std::size_t column) const;
};

/// Samples as they stand in the files; labels are numbered as they first appear.
struct CsvTable {
  std::vector<double> features;  ///< [count, columns − 1]; in double, so that standardising loses
                                 ///< no digits to large offsets
  std::vector<float> targets;
  std::vector<std::int32_t> labels;
  std::map<std::string, std::int32_t> classes;
  std::size_t count = 0;
};

/// The final number of each class, by its number in the table: the order of data.class_names, or
/// else ascending as numbers if all are numbers, and as texts otherwise.
std::vector<std::int32_t> class_numbers(const CsvOptions& options, const CsvTable& table);

/// Reads one file after the other into one table; the first file defines the columns, and the
/// training files the classes, unless they have names in the options, which outlive the reader.
class CsvReader {
 public:
  explicit CsvReader(const CsvOptions& options);

  /// Adds the samples of a file. Errors: (data, beginning with the file and the line) as of
  /// read_csv(), a field that is no number, columns or a class unlike the others', no samples, or
  /// more than a data set can number;
  /// (invalid) data.target is no column. What it has read of a bad file stays in the table.
  Status read(const std::string& file);
  /// The training files have been read: no class is added from here on.
  void freeze_classes() { frozen_ = true; }

  const CsvTable& table() const { return table_; }
  const CsvColumns& columns() const { return columns_; }

 private:
  Status add(const std::string& file, const CsvRow& row);
  Status add_label(const std::string& file, std::size_t line, const std::string& text);

  const CsvOptions& options_;
  std::string first_file_;  // it defines the columns
  CsvColumns columns_;
  CsvTable table_;
  bool frozen_ = false;  // no class is added
};

}  // namespace gossamer::train
