// Named float32 tensors as a safetensors file (huggingface/safetensors, format 1): writing, reading
// a whole file, and reading parts of a tensor.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/input_file.hpp"
#include "base/result.hpp"
#include "peer/storage/disk.hpp"

namespace gossamer::peer {

struct Tensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::span<const float> values;
};
using Metadata = std::map<std::string, std::string>;

/// The metadata of a checkpoint that lists its tensors that are no parameters, with commas between
/// their names.
inline constexpr const char* kStateTensors = "state_tensors";

/// Writes the tensors to `path` atomically. Errors (data) name the path and the system's reason.
Status write_safetensors(const std::filesystem::path& path, const std::vector<Tensor>& tensors,
                         const Metadata& metadata, Disk& disk = real_disk());

/// Shape and position of a tensor in its file.
struct TensorInfo {
  std::string name;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;  ///< byte offset of the first value from the start of the file
  std::size_t values = 0;
};

/// The header of a file: everything but the values.
struct SafetensorsHeader {
  std::string bytes;                ///< first bytes of the file: length of the header, the header
  std::vector<TensorInfo> tensors;  ///< in file order
  std::map<std::string, std::size_t> indices;  ///< into `tensors`, by name
  Metadata metadata;

  /// Null if there is no tensor of this name. Valid until add().
  const TensorInfo* find(const std::string& name) const;
  void add(TensorInfo tensor);
};
/// The header of a file with tensors of these names and shapes, in this order. Tensor::values is
/// not used.
SafetensorsHeader make_safetensors_header(const std::vector<Tensor>& tensors,
                                          const Metadata& metadata);

/// A file open for reading, whose header was checked: the shapes match the sizes, and the tensors
/// fill the file exactly. Thread: one at a time.
class SafetensorsFile {
 public:
  /// Errors (data) name the file and the problem: the file is missing or truncated, its header is
  /// damaged, or a tensor has another type than F32.
  static Result<SafetensorsFile> open(const std::filesystem::path& path);

  const SafetensorsHeader& header() const { return header_; }
  const std::filesystem::path& path() const { return file_.path(); }
  /// Reads into.size() values, starting at value `first` of the tensor. The range lies within the
  /// tensor.
  Status read(const TensorInfo& tensor, std::size_t first, std::span<float> into) const;

 private:
  explicit SafetensorsFile(InputFile file) : file_(std::move(file)) {}
  Status read_header();

  InputFile file_;
  SafetensorsHeader header_;
};

/// A whole safetensors file in memory. The tensors point into `memory`.
struct TensorFile {
  std::vector<float> memory;
  std::vector<Tensor> tensors;  ///< in file order
  Metadata metadata;
};
/// Errors as of SafetensorsFile.
Result<TensorFile> read_safetensors(const std::filesystem::path& path);

}  // namespace gossamer::peer
