// Files of a run folder. What must be whole or absent is written beside its place and renamed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.hpp"
#include "peer/storage/disk.hpp"

namespace gossamer::peer {

using Json = nlohmann::ordered_json;

/// A file that appears under its name when all of it is on the disk, and not before: temporary
/// file, fsync, rename, fsync of the folder. Until then what had the name before stays. Errors
/// (data) name the path and the system's reason. Any thread, one at a time.
class WholeFile {
 public:
  /// Makes the temporary file. `disk` outlives this object.
  static Result<WholeFile> create(const std::filesystem::path& path, Disk& disk = real_disk());
  WholeFile(WholeFile&& other) noexcept;
  WholeFile& operator=(WholeFile&&) = delete;
  /// Takes the temporary file away, unless it was committed.
  ~WholeFile();

  Status write(std::uint64_t offset, std::string_view bytes);
  /// Gives the file its name. After an error it may have it or not, and is whole if it has.
  Status commit();

 private:
  WholeFile(std::filesystem::path path, std::filesystem::path temporary, int descriptor, Disk& disk)
      : path_(std::move(path)),
        temporary_(std::move(temporary)),
        descriptor_(descriptor),
        disk_(&disk) {}
  std::filesystem::path path_, temporary_;
  int descriptor_;
  Disk* disk_;
};
/// What the names of temporary files end with: whoever is killed leaves them behind.
inline constexpr std::string_view kTemporary = ".part";

/// Writes `content` to `path`, whole or not at all.
Status write_file(const std::filesystem::path& path, std::string_view content,
                  Disk& disk = real_disk());
/// Bytes of a regular file. Errors (data) name the path and why not: missing, a folder or a device.
Result<std::uint64_t> size_of_file(const std::filesystem::path& path);
/// All of a regular file. Errors as of size_of_file, or that it is larger than `most_bytes`.
Result<std::string> read_file(const std::filesystem::path& path,
                              std::uint64_t most_bytes = std::numeric_limits<std::uint64_t>::max());

/// Gives `take` the lines of a regular file one after the other, without their ends, until it
/// returns an error, which is then this function's. A last line that has no end was torn and is
/// left out. Errors as of size_of_file.
Status read_lines(const std::filesystem::path& path,
                  const std::function<Status(std::string_view line)>& take);

/// Makes a regular file of `from` bytes shorter, to its first `to`, and syncs it. False, and
/// nothing is done, where it has not so many or a process has it open as a RecordFile. Errors
/// (data) name the path and the reason.
Result<bool> shorten_file(const std::filesystem::path& path, std::uint64_t from, std::uint64_t to);

/// Appends JSON records to a file, a line each, flushed. After a failed write the file ends with
/// its last whole line, and that write's error, which names the path and the reason, is also every
/// later one's. The file is locked as long (flock, as far as the file system has it), which hinders
/// nobody but shorten_file.
class RecordFile {
 public:
  /// Creates `path`, which must not exist.
  static Result<RecordFile> create(const std::filesystem::path& path);
  /// Goes on behind the last line of `path`, which must exist.
  static Result<RecordFile> append(const std::filesystem::path& path);
  RecordFile(RecordFile&& other) noexcept;
  RecordFile& operator=(RecordFile&&) = delete;
  ~RecordFile();

  Status write(const Json& record);
  /// fsync and close.
  Status close();

 private:
  RecordFile(std::filesystem::path path, int descriptor);
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::int64_t whole_bytes_ = 0;  ///< of its lines so far
  Status failed_;
};

/// JSON on one line, or indented. Bytes that are not UTF-8, as in a file's name, become U+FFFD:
/// writing never fails.
std::string text_of(const Json& json, int indent = -1);

}  // namespace gossamer::peer
