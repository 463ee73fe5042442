#include "base/input_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace gossamer {
namespace {

constexpr std::size_t kReadBytes = 1 << 20;

}  // namespace

Error file_error(const char* action, const std::filesystem::path& path, int reason) {
  return data_error(fmt::format("cannot {} {}: {}", action, path.string(), std::strerror(reason)));
}

Result<InputFile> InputFile::open(const std::filesystem::path& path) {
  // O_NONBLOCK: a pipe without a writer would hold the caller for ever. It does not affect files.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) return file_error("read", path, errno);
  InputFile file(path, descriptor, 0);
  struct stat status{};
  if (::fstat(descriptor, &status) != 0) return file_error("read", path, errno);
  if (S_ISDIR(status.st_mode)) return file_error("read", path, EISDIR);
  if (!S_ISREG(status.st_mode))
    return data_error(
        fmt::format("cannot read {}: it is a device or a pipe, not a file", path.string()));
  file.bytes_ = static_cast<std::uint64_t>(status.st_size);
  return file;
}

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<std::size_t> InputFile::read(std::uint64_t offset, std::span<char> into) const {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t count = ::pread(descriptor_, into.data() + done, into.size() - done,
                                  static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_error("read", path_, errno);
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return done;
}

Status InputFile::read_exactly(std::uint64_t offset, std::span<char> into) const {
  GOSSAMER_TRY(const std::size_t done, read(offset, into));
  if (done < into.size())
    return data_error(
        fmt::format("cannot read {}: it ends after {} bytes", path_.string(), offset + done));
  return {};
}

Result<std::optional<std::string_view>> LineReader::next() {
  std::size_t searched = begin_;
  while (true) {
    const std::size_t end = buffer_.find('\n', searched);
    if (end != std::string::npos) {
      const std::string_view line = std::string_view(buffer_).substr(begin_, end - begin_);
      begin_ = end + 1;
      complete_ = true;
      return std::optional(line);
    }
    buffer_.erase(0, begin_);
    begin_ = 0;
    if (buffer_.size() > kMaxLineBytes)
      return data_error(fmt::format("cannot read {}: it has a line of more than {} MiB",
                                    file_.path().string(), kMaxLineBytes >> 20));
    searched = buffer_.size();
    buffer_.resize(searched + kReadBytes);
    GOSSAMER_TRY(const std::size_t count,
                 file_.read(offset_, std::span(buffer_).subspan(searched)));
    buffer_.resize(searched + count);
    offset_ += count;
    if (count > 0) continue;
    complete_ = false;
    if (buffer_.empty()) return std::optional<std::string_view>();
    begin_ = buffer_.size();
    return std::optional<std::string_view>(buffer_);
  }
}

bool has_entry(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::symlink_status(path, ignored).type() !=
         std::filesystem::file_type::not_found;
}

Result<std::string> read_file(const std::filesystem::path& path, std::uint64_t max_bytes) {
  GOSSAMER_TRY(const InputFile file, InputFile::open(path));
  if (file.bytes() > max_bytes)
    return data_error(fmt::format("cannot read {}: it has {} bytes, and at most {} are allowed",
                                  path.string(), file.bytes(), max_bytes));
  std::string content(file.bytes(), '\0');
  GOSSAMER_TRY(const std::size_t count, file.read(0, content));
  content.resize(count);
  return content;
}

}  // namespace gossamer
