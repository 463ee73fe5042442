#include "peer/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <utility>

namespace gossamer::peer {
namespace {

namespace fs = std::filesystem;

Error cannot(const char* what, const fs::path& path, int reason) {
  return {ErrorKind::data, fmt::format("cannot {} {}: {}", what, path.string(), std::strerror(reason))};
}

Status write_all(int descriptor, const fs::path& path, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(descriptor, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return cannot("write", path, errno);
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

void sync_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;  // the rename is done; a folder that cannot be synced is not worth an error
  ::fsync(descriptor);
  ::close(descriptor);
}

/// A file that appears under its name when all of it is on the disk.
Status write_whole(const fs::path& path, const std::vector<std::string_view>& parts) {
  const fs::path temporary = path.string() + fmt::format(".{}.part", ::getpid());
  const int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) return cannot("create", temporary, errno);
  Status status;
  for (std::string_view part : parts)
    if (status.ok()) status = write_all(descriptor, path, part);
  if (status.ok() && ::fsync(descriptor) != 0) status = cannot("write", path, errno);
  if (::close(descriptor) != 0 && status.ok()) status = cannot("write", path, errno);
  if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0) status = cannot("rename to", path, errno);
  if (!status.ok()) ::unlink(temporary.c_str());
  else sync_folder(path.parent_path());
  return status;
}

/// As many values as the shape says; exact, whatever a damaged header claims.
bool fits(const Tensor& tensor) {
  std::uint64_t count = 1;
  for (const std::int64_t extent : tensor.shape) {
    if (extent < 0 || (extent > 0 && count > tensor.values.size() / static_cast<std::uint64_t>(extent))) return false;
    count *= static_cast<std::uint64_t>(extent);
  }
  return count == tensor.values.size();
}

}  // namespace

Status write_file(const fs::path& path, std::string_view content) { return write_whole(path, {content}); }

Result<std::string> read_file(const fs::path& path, std::uintmax_t most_bytes) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (fs::is_directory(status)) return cannot("read", path, EISDIR);
  if (fs::exists(status) && !fs::is_regular_file(status))  // reading may never end, or never begin
    return Error{ErrorKind::data, fmt::format("cannot read {}: it is a device or a pipe, not a file", path.string())};
  if (const std::uintmax_t bytes = fs::file_size(path, ignored); !ignored && bytes > most_bytes)
    return Error{ErrorKind::data,
                 fmt::format("cannot read {}: it has {} bytes, and {} are the most", path.string(), bytes, most_bytes)};
  errno = 0;
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return cannot("read", path, errno == 0 ? EIO : errno);
  std::stringstream content;
  if (stream.peek() != std::ifstream::traits_type::eof()) content << stream.rdbuf();
  if (stream.bad()) return cannot("read", path, EIO);
  return content.str();
}

Result<RecordFile> RecordFile::create(const fs::path& path) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor < 0) return cannot("create", path, errno);
  return RecordFile(path, descriptor);
}

RecordFile::RecordFile(RecordFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      whole_bytes_(other.whole_bytes_),
      failed_(std::move(other.failed_)) {}

RecordFile::~RecordFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Status RecordFile::write(const Json& record) {
  if (!failed_.ok()) return failed_;
  if (descriptor_ < 0) return cannot("write", path_, EBADF);
  const std::string line = text_of(record) + "\n";
  failed_ = write_all(descriptor_, path_, line);
  if (failed_.ok()) whole_bytes_ += static_cast<std::int64_t>(line.size());
  else if (::ftruncate(descriptor_, whole_bytes_) != 0) return failed_;  // a device, say: readers leave a torn line out
  return failed_;
}

Status RecordFile::close() {
  const int descriptor = std::exchange(descriptor_, -1);
  if (descriptor < 0) return {};
  const bool synced = ::fsync(descriptor) == 0;
  const int reason = errno;
  if (::close(descriptor) != 0) return cannot("write", path_, errno);
  return synced ? Status() : Status(cannot("write", path_, reason));
}

std::string text_of(const Json& json, int indent) { return json.dump(indent, ' ', false, Json::error_handler_t::replace); }

Status write_safetensors(const fs::path& path, const std::vector<Tensor>& tensors,
                         const std::map<std::string, std::string>& metadata) {
  static_assert(std::endian::native == std::endian::little, "safetensors are little-endian");
  Json header;
  header["__metadata__"] = metadata;
  std::uint64_t offset = 0;
  for (const Tensor& tensor : tensors) {
    const std::uint64_t end = offset + tensor.values.size_bytes();
    header[tensor.name] = {{"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = text_of(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the values begin at a multiple of 8
  const std::uint64_t length = text.size();
  std::vector<std::string_view> parts{{reinterpret_cast<const char*>(&length), sizeof length}, text};
  for (const Tensor& tensor : tensors)
    parts.emplace_back(reinterpret_cast<const char*>(tensor.values.data()), tensor.values.size_bytes());
  return write_whole(path, parts);
}

Result<TensorFile> read_safetensors(const fs::path& path) {
  const auto damaged = [&](const std::string& what) {
    return Error{ErrorKind::data, fmt::format("{} is damaged: {}", path.string(), what)};
  };
  GOSSAMER_TRY(const std::string content, read_file(path));
  std::uint64_t length = 0;
  if (content.size() < sizeof length) return damaged("it is shorter than its first field");
  std::memcpy(&length, content.data(), sizeof length);
  if (length > content.size() - sizeof length) return damaged("its header is cut short");
  const Json header = Json::parse(content.substr(sizeof length, length), nullptr, false);
  if (!header.is_object()) return damaged("its header is not JSON");
  TensorFile file;
  file.memory.assign(content.begin() + static_cast<std::ptrdiff_t>(sizeof length + length), content.end());
  std::uint64_t covered = 0;
  try {
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__") {
        file.metadata = entry.get<std::map<std::string, std::string>>();
        continue;
      }
      if (entry.at("dtype") != "F32") return damaged(fmt::format("tensor {} is not F32", name));
      const auto begin = entry.at("data_offsets").at(0).get<std::uint64_t>(),
                 end = entry.at("data_offsets").at(1).get<std::uint64_t>();
      if (begin > end || end > file.memory.size() || begin % sizeof(float) != 0 || (end - begin) % sizeof(float) != 0)
        return damaged(fmt::format("tensor {} lies outside the file (cut short?)", name));
      const std::span<const float> values(reinterpret_cast<const float*>(file.memory.data() + begin),
                                          (end - begin) / sizeof(float));
      file.tensors.push_back({name, entry.at("shape").get<std::vector<std::int64_t>>(), values});
      if (!fits(file.tensors.back()))
        return damaged(fmt::format("tensor {} has not as many values as its shape says", name));
      covered += end - begin;
    }
  } catch (const Json::exception& error) {
    return damaged(error.what());
  }
  if (covered != file.memory.size()) return damaged("its tensors are not all of the file");
  return file;
}

}  // namespace gossamer::peer
