// Named float32 tensors as a safetensors file (huggingface/safetensors, format 1): written, and
// read whole or piece by piece.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "peer/storage/disk.hpp"

namespace gossamer::peer {

struct Tensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::span<const float> values;
};
using Metadata = std::map<std::string, std::string>;

/// Writes all of them, whole or not at all. Errors (data) name the path and the system's reason.
Status write_safetensors(const std::filesystem::path& path, const std::vector<Tensor>& tensors,
                         const Metadata& metadata, Disk& disk = real_disk());

/// Where a tensor's values lie in its file.
struct TensorPlace {
  std::string name;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;  ///< bytes from the file's beginning
  std::size_t values = 0;
};

/// All of a file but the values.
struct SafetensorsHead {
  std::string bytes;                 ///< as the file begins: the header's length, the header
  std::vector<TensorPlace> tensors;  ///< in file order
  std::map<std::string, std::size_t> places;  ///< in tensors, by name
  Metadata metadata;

  const TensorPlace* find(const std::string& name) const;
  void add(TensorPlace tensor);
};
/// The head of a file that holds tensors of these names and shapes in this order; values are not
/// looked at.
SafetensorsHead safetensors_head(const std::vector<Tensor>& tensors, const Metadata& metadata);

/// A file open for reading, its head checked: shapes that fit, tensors that lie in the file and are
/// all of it. Thread: one at a time.
class SafetensorsFile {
 public:
  /// Errors (data) name the file and what is wrong: missing, cut short, damaged header, other types
  /// than F32.
  static Result<SafetensorsFile> open(const std::filesystem::path& path);

  const SafetensorsHead& head() const { return head_; }
  const std::filesystem::path& path() const { return path_; }
  /// Values from `first` on, as many as `into` has room for; within the tensor.
  Status read(const TensorPlace& tensor, std::size_t first, std::span<float> into);

 private:
  explicit SafetensorsFile(std::filesystem::path path)
      : path_(std::move(path)), stream_(path_, std::ios::binary) {}
  Status read_head(std::uint64_t file_bytes);

  std::filesystem::path path_;
  std::ifstream stream_;
  SafetensorsHead head_;
};

/// A safetensors file read whole. Tensors point into `memory`.
struct TensorFile {
  std::vector<float> memory;
  std::vector<Tensor> tensors;  ///< in file order
  Metadata metadata;
};
/// Errors as of SafetensorsFile.
Result<TensorFile> read_safetensors(const std::filesystem::path& path);

}  // namespace gossamer::peer
