// Files of a run folder. What must be whole or absent is written beside its place and renamed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace gossamer::peer {

using Json = nlohmann::ordered_json;

/// Writes `content` to `path`, whole or not at all: temporary file, fsync, rename, fsync of the folder. Errors (data) name
/// the path and the system's reason.
Status write_file(const std::filesystem::path& path, std::string_view content);
/// All of a regular file. Errors (data) name the path and why: missing, a folder or a device, larger than `most_bytes`.
Result<std::string> read_file(const std::filesystem::path& path,
                              std::uintmax_t most_bytes = std::numeric_limits<std::uintmax_t>::max());

/// Appends JSON records to a file, a line each, flushed. After a failed write the file ends with its last whole line, and
/// that write's error, which names the path and the reason, is also every later one's.
class RecordFile {
 public:
  /// Creates `path`, which must not exist.
  static Result<RecordFile> create(const std::filesystem::path& path);
  RecordFile(RecordFile&& other) noexcept;
  RecordFile& operator=(RecordFile&&) = delete;
  ~RecordFile();

  Status write(const Json& record);
  /// fsync and close.
  Status close();

 private:
  RecordFile(std::filesystem::path path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::int64_t whole_bytes_ = 0;  ///< of the lines written so far
  Status failed_;
};

/// JSON on one line, or indented. Bytes that are not UTF-8, as in a file's name, become U+FFFD: writing never fails.
std::string text_of(const Json& json, int indent = -1);

/// Named float32 tensors as a safetensors file (huggingface/safetensors, format 1).
struct Tensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::span<const float> values;
};
Status write_safetensors(const std::filesystem::path& path, const std::vector<Tensor>& tensors,
                         const std::map<std::string, std::string>& metadata);

/// A safetensors file read whole. Tensors point into `memory`.
struct TensorFile {
  std::vector<char> memory;
  std::vector<Tensor> tensors;  ///< in file order
  std::map<std::string, std::string> metadata;
};
/// Errors (data) name the file and what is wrong: missing, cut short, damaged header, other types than F32.
Result<TensorFile> read_safetensors(const std::filesystem::path& path);

}  // namespace gossamer::peer
