// Reading and writing the files of a run folder: atomic replacement, whole and line-wise reading,
// and append-only files of JSON records.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/input_file.hpp"
#include "base/result.hpp"
#include "peer/storage/disk.hpp"
#include "peer/storage/json.hpp"

namespace gossamer::peer {

/// Error (data): the content of `path` is not what its format demands; `what` says where.
Error damaged_file(const std::filesystem::path& path, const std::string& what);

/// A file that is replaced atomically: it gets its name only after all of its content is on the
/// disk (temporary file, fsync, rename, fsync of the folder). Until then, the file that had the
/// name before is unchanged. Errors (data) name the path and the system's reason. Thread: any, one
/// at a time.
class AtomicFile {
 public:
  /// Creates the temporary file. `disk` outlives this object. Error: at `path`, also through a
  /// symbolic link, there is something that is no regular file.
  static Result<AtomicFile> create(const std::filesystem::path& path, Disk& disk = real_disk());
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  /// Removes the temporary file, unless it was committed.
  ~AtomicFile();

  Status write(std::uint64_t offset, std::string_view bytes);
  /// Gives the file its name. If this fails, the name refers to the old content or to the complete
  /// new content.
  Status commit();

 private:
  AtomicFile(std::filesystem::path path, std::filesystem::path temporary, int descriptor,
             Disk& disk)
      : path_(std::move(path)),
        temporary_(std::move(temporary)),
        descriptor_(descriptor),
        disk_(&disk) {}
  std::filesystem::path path_, temporary_;
  int descriptor_;
  Disk* disk_;
};
/// The suffix of temporary files. A process that is killed leaves its temporary files behind.
inline constexpr std::string_view kTemporarySuffix = ".part";

/// Writes `content` to `path` atomically. Errors as of AtomicFile.
Status write_file(const std::filesystem::path& path, std::string_view content,
                  Disk& disk = real_disk());

/// Calls `on_line` with each line of a regular file, without its line end. An error of `on_line`
/// ends the reading and is returned. A last line without a line end is incomplete and is skipped.
/// Errors as of LineReader.
Status read_lines(const std::filesystem::path& path,
                  const std::function<Status(std::string_view line)>& on_line);

/// Truncates a regular file from `old_bytes` to `new_bytes` and syncs it. Returns false and changes
/// nothing if the file has another size than `old_bytes`, or if a process has it open as a
/// RecordFile. Errors (data) name the path and the reason.
Result<bool> truncate_file(const std::filesystem::path& path, std::uint64_t old_bytes,
                           std::uint64_t new_bytes);

/// Appends JSON records to a file, one line each, and flushes each line. After a failed write the
/// file ends with its last complete line, and every later write returns the same error, which names
/// the path and the reason. A write fails too if the path has become another file, or the file has
/// been truncated: the records would be lost. The file is locked (flock, where the file system
/// supports it) while this object has it open; the lock excludes truncate_file only.
class RecordFile {
 public:
  /// Creates `path`, which must not exist.
  static Result<RecordFile> create(const std::filesystem::path& path);
  /// Appends to `path`, which must exist.
  static Result<RecordFile> append(const std::filesystem::path& path);
  RecordFile(RecordFile&& other) noexcept;
  RecordFile& operator=(RecordFile&&) = delete;
  ~RecordFile();

  Status write(const Json& record);
  /// Returns after the records are on the disk. Thread: any, also during a write.
  Status sync() const;
  /// fsync and close.
  Status close();

 private:
  RecordFile(std::filesystem::path path, int descriptor);
  /// Whether the path leads to the open file, with all of its records.
  bool is_in_place() const;
  std::filesystem::path path_;
  std::filesystem::path place_;  ///< path_ wherever the working folder is
  int descriptor_ = -1;
  std::int64_t complete_bytes_ = 0;  ///< total size of the complete lines
  Status failed_;
};

}  // namespace gossamer::peer
