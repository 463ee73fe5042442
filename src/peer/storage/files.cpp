#include "peer/storage/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace gossamer::peer {
namespace {

namespace fs = std::filesystem;

Status write_all(int descriptor, const fs::path& path, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(descriptor, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return file_error("write", path, errno);
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

}  // namespace

Error damaged_file(const std::filesystem::path& path, const std::string& what) {
  return data_error(fmt::format("{} is damaged: {}", path.string(), what));
}

Result<AtomicFile> AtomicFile::create(const fs::path& path, Disk& disk) {
  // To rename a file to /dev/null would end that device for the whole machine.
  struct stat found{};
  if (::stat(path.c_str(), &found) == 0 && !S_ISREG(found.st_mode))
    return data_error(fmt::format("cannot write {}: it is no regular file but {}; name another one",
                                  path.string(),
                                  S_ISDIR(found.st_mode)    ? "a folder"
                                  : S_ISFIFO(found.st_mode) ? "a pipe"
                                                            : "a device or socket"));
  fs::path temporary = path.string() + fmt::format(".{}{}", ::getpid(), kTemporarySuffix);
  const int descriptor = disk.create(temporary);
  if (descriptor < 0) return file_error("create", temporary, -descriptor);
  return AtomicFile(path, std::move(temporary), descriptor, disk);
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      descriptor_(std::exchange(other.descriptor_, -1)),
      disk_(other.disk_) {}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) disk_->close(descriptor_);
  if (!temporary_.empty()) disk_->remove(temporary_);
}

Status AtomicFile::write(std::uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const std::int64_t written = disk_->write(descriptor_, offset, bytes);
    if (written < 0) return file_error("write", path_, static_cast<int>(-written));
    if (written == 0) return file_error("write", path_, EIO);
    offset += static_cast<std::uint64_t>(written);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Status AtomicFile::commit() {
  if (const int failed = disk_->sync(descriptor_); failed < 0)
    return file_error("write", path_, -failed);
  if (const int failed = disk_->close(std::exchange(descriptor_, -1)); failed < 0)
    return file_error("write", path_, -failed);
  if (const int failed = disk_->rename(temporary_, path_); failed < 0)
    return file_error("rename to", path_, -failed);
  temporary_.clear();
  if (const int failed = disk_->sync_path(path_.parent_path()); failed < 0)
    return file_error("sync the folder of", path_, -failed);
  return {};
}

Status write_file(const fs::path& path, std::string_view content, Disk& disk) {
  GOSSAMER_TRY(AtomicFile file, AtomicFile::create(path, disk));
  GOSSAMER_TRY_STATUS(file.write(0, content));
  return file.commit();
}

Status read_lines(const fs::path& path,
                  const std::function<Status(std::string_view line)>& on_line) {
  GOSSAMER_TRY(InputFile file, InputFile::open(path));
  LineReader lines(std::move(file));
  while (true) {
    GOSSAMER_TRY(const std::optional<std::string_view> line, lines.next());
    if (!line || !lines.complete()) return {};
    GOSSAMER_TRY_STATUS(on_line(*line));
  }
}

Result<bool> truncate_file(const fs::path& path, std::uint64_t old_bytes, std::uint64_t new_bytes) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) return file_error("open", path, errno);
  Result<bool> done = ::flock(descriptor, LOCK_EX | LOCK_NB) == 0 &&
                      ::lseek(descriptor, 0, SEEK_END) == static_cast<off_t>(old_bytes);
  // Without the sync, a power cut could leave records that are appended next in the middle of the
  // old content.
  if (*done && old_bytes > new_bytes &&
      (::ftruncate(descriptor, static_cast<off_t>(new_bytes)) != 0 || ::fsync(descriptor) != 0))
    done = file_error("truncate", path, errno);
  ::close(descriptor);
  return done;
}

Result<RecordFile> RecordFile::create(const fs::path& path) {
  const int descriptor =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor < 0) return file_error("create", path, errno);
  return RecordFile(path, descriptor);
}

Result<RecordFile> RecordFile::append(const fs::path& path) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (descriptor < 0) return file_error("open", path, errno);
  return RecordFile(path, descriptor);
}

RecordFile::RecordFile(fs::path path, int descriptor)
    : path_(std::move(path)),
      place_(fs::absolute(path_)),
      descriptor_(descriptor),
      complete_bytes_(::lseek(descriptor, 0, SEEK_END)) {
  ::flock(descriptor, LOCK_EX | LOCK_NB);
}

RecordFile::RecordFile(RecordFile&& other) noexcept
    : path_(std::move(other.path_)),
      place_(std::move(other.place_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      complete_bytes_(other.complete_bytes_),
      failed_(std::move(other.failed_)) {}

RecordFile::~RecordFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool RecordFile::is_in_place() const {
  struct stat open{}, named{};
  if (::fstat(descriptor_, &open) != 0 || ::stat(place_.c_str(), &named) != 0) return false;
  const bool whole = !S_ISREG(open.st_mode) || open.st_size >= complete_bytes_;
  return whole && open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

Status RecordFile::write(const Json& record) {
  if (!failed_.ok()) return failed_;
  if (descriptor_ < 0) return file_error("write", path_, EBADF);
  if (!is_in_place())
    return failed_ = data_error(fmt::format(
               "cannot write {}: the file was removed, renamed, replaced or truncated since this "
               "process opened it; put it back as it was, and leave the log of a run in place "
               "until the run has ended",
               path_.string()));
  const std::string line = text_of(record) + "\n";
  failed_ = write_all(descriptor_, path_, line);
  if (failed_.ok()) complete_bytes_ += static_cast<std::int64_t>(line.size());
  else if (::ftruncate(descriptor_, complete_bytes_) != 0)
    return failed_;  // for example a device: readers skip an incomplete last line
  return failed_;
}

Status RecordFile::sync() const {
  const bool synced = ::fsync(descriptor_) == 0 || errno == EINVAL || errno == ENOTSUP;
  return synced ? Status() : Status(file_error("write", path_, errno));
}

Status RecordFile::close() {
  const int descriptor = std::exchange(descriptor_, -1);
  if (descriptor < 0) return {};
  const bool synced = ::fsync(descriptor) == 0;
  const int reason = errno;
  if (::close(descriptor) != 0) return file_error("write", path_, errno);
  return synced ? Status() : Status(file_error("write", path_, reason));
}

}  // namespace gossamer::peer
