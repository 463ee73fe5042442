// The system calls that make a file durable, as an interface, so that a test can fail any single
// call or stop the process at it. All files that are replaced atomically are written through it
// (peer/storage/files.hpp).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace gossamer::peer {

/// Each call returns a value ≥ 0 on success, and the negated errno on failure. Thread: any.
class Disk {
 public:
  virtual ~Disk() = default;
  /// Creates an empty file, open for writing. Returns its descriptor.
  virtual int create(const std::filesystem::path& path) = 0;
  /// Writes at `offset` and returns the number of bytes written, which may be less than given.
  virtual std::int64_t write(int descriptor, std::uint64_t offset, std::string_view bytes) = 0;
  /// Returns after everything that was written to the file is on the disk.
  virtual int sync(int descriptor) = 0;
  virtual int close(int descriptor) = 0;
  /// Atomically replaces `to` by `from`.
  virtual int rename(const std::filesystem::path& from, const std::filesystem::path& to) = 0;
  virtual int remove(const std::filesystem::path& path) = 0;
  /// Returns after the names in the folder are on the disk. Returns 0 also where the file system
  /// does not support syncing.
  virtual int sync_path(const std::filesystem::path& path) = 0;
};

/// The operating system's file system.
Disk& real_disk();

}  // namespace gossamer::peer
