// Reading regular files. A path may name anything, so opening one never blocks (as a pipe would),
// and every reader states the most that it takes into memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.hpp"

namespace gossamer {

/// A regular file that is open for reading. Errors (data) of all functions name the path and the
/// reason. Thread: any, one at a time.
class InputFile {
 public:
  /// Errors: the file is missing or not readable, or it is a folder, a device or a pipe.
  static Result<InputFile> open(const std::filesystem::path& path);
  InputFile(InputFile&& other) noexcept
      : path_(std::move(other.path_)),
        descriptor_(std::exchange(other.descriptor_, -1)),
        bytes_(other.bytes_) {}
  InputFile& operator=(InputFile&&) = delete;
  ~InputFile();

  const std::filesystem::path& path() const { return path_; }
  /// Size in bytes when it was opened.
  std::uint64_t bytes() const { return bytes_; }

  /// Reads from byte `offset` on until `into` is full or the file ends. Returns the number of bytes
  /// read.
  Result<std::size_t> read(std::uint64_t offset, std::span<char> into) const;
  /// As `read`; a file that ends before `into` is full is an error.
  Status read_exactly(std::uint64_t offset, std::span<char> into) const;

 private:
  InputFile(std::filesystem::path path, int descriptor, std::uint64_t bytes)
      : path_(std::move(path)), descriptor_(descriptor), bytes_(bytes) {}
  std::filesystem::path path_;
  int descriptor_;
  std::uint64_t bytes_;
};

/// The lines of a file, one after the other, without their line ends. Thread: any, one at a time.
class LineReader {
 public:
  /// A line longer than this is an error: no line of a log or a table comes near it.
  static constexpr std::size_t kMaxLineBytes = 64 << 20;

  /// From byte `begin` of the file on, where a line begins.
  explicit LineReader(InputFile file, std::uint64_t begin = 0)
      : file_(std::move(file)), offset_(begin) {}
  /// The next line, valid until the next call; empty after the last. Errors: as of InputFile::read,
  /// and a line of more than kMaxLineBytes.
  Result<std::optional<std::string_view>> next();
  /// Whether the last line that was returned ended with a line end.
  bool complete() const { return complete_; }

 private:
  InputFile file_;
  std::string buffer_;     ///< bytes that have been read, from the present line on
  std::size_t begin_ = 0;  ///< where the next line begins in buffer_
  std::uint64_t offset_;   ///< of the first byte of the file that is not in buffer_ yet
  bool complete_ = false;
};

/// Error (data): the file cannot be opened, read or written, for the reason that errno names.
Error file_error(const char* action, const std::filesystem::path& path, int reason);

/// Whether the folder has an entry of this name: also a link that leads nowhere or in a circle, and
/// one of which the system does not say. Never throws, unlike std::filesystem::exists.
bool has_entry(const std::filesystem::path& path);

/// The content of a regular file. Errors as of InputFile, or (data) the file has more than
/// `max_bytes`.
Result<std::string> read_file(const std::filesystem::path& path, std::uint64_t max_bytes);

}  // namespace gossamer
