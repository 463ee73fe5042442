// Vocabulary of the tests of data files: a temporary folder, files in it, and the data set or the
// error that they give.
#pragma once

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/text_test_util.hpp"
#include "train/dataset.hpp"

namespace gossamer::train {

namespace fs = std::filesystem;

using Bytes = std::vector<unsigned char>;

/// A new folder for data sets of one kind; removed when the test ends.
class Folder {
 public:
  explicit Folder(std::string kind) : kind_(std::move(kind)) {
    std::string pattern = (fs::temp_directory_path() / "gossamer-data-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  Folder& file(const std::string& name, const Bytes& bytes) {
    return file(name, std::string(bytes.begin(), bytes.end()));
  }
  Folder& file(const std::string& name, const std::string& text) {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << text;
    return *this;
  }
  std::string path(const std::string& name = "") const {
    return name.empty() ? path_.string() : (path_ / name).string();
  }

  /// data.path is the folder unless `values` has it.
  Result<Dataset> load(ParameterValues values = {}) const {
    values.try_emplace("path", path());
    return make_dataset(kind_, {}, values);
  }
  Dataset good(const ParameterValues& values = {}) const {
    auto data = load(values);
    REQUIRE_MESSAGE(data.ok(), (data.ok() ? "" : data.error().message));
    return *data;
  }
  std::string refusal(const ParameterValues& values = {}) const {
    const auto data = load(values);
    REQUIRE_FALSE(data.ok());
    return data.error().message;
  }

 private:
  std::string kind_;
  fs::path path_;
};

inline ParameterValue number(std::int64_t value) { return value; }
inline ParameterValue text(const std::string& value) { return value; }

}  // namespace gossamer::train
