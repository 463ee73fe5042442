// What making a file durable asks of the system, call by call, so that a test can fail any of the
// calls, or stop at it as a process does that is killed there. Every file that must be whole or
// absent is written through it (peer/storage/files.hpp).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace gossamer::peer {

/// Each call returns 0 or what it says; where it fails, the system's reason (errno) as a negative
/// number. Any thread.
class Disk {
 public:
  virtual ~Disk() = default;
  /// An empty file, open for writing: its descriptor.
  virtual int create(const std::filesystem::path& path) = 0;
  /// Bytes written at `offset`, perhaps fewer than given.
  virtual std::int64_t write(int descriptor, std::uint64_t offset, std::string_view bytes) = 0;
  /// What was written is on the disk when it returns.
  virtual int sync(int descriptor) = 0;
  virtual int close(int descriptor) = 0;
  /// In place of what is called `to`, at once.
  virtual int rename(const std::filesystem::path& from, const std::filesystem::path& to) = 0;
  virtual int remove(const std::filesystem::path& path) = 0;
  /// What the file holds, whoever wrote it, or the names in the folder are on the disk when it
  /// returns; 0 also where the file system knows no such thing.
  virtual int sync_path(const std::filesystem::path& path) = 0;
};

/// The machine's own.
Disk& real_disk();

}  // namespace gossamer::peer
