// What fuzz targets of files share: the input as a file in memory, or in a folder.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/result.hpp"
#include "tests/fuzz/target.hpp"

namespace gossamer::fuzz {

/// A file in memory with the input as its content.
class MemoryFile {
 public:
  explicit MemoryFile(std::span<const std::byte> content) : descriptor_(memfd_create("fuzz", 0)) {
    require(descriptor_ >= 0, "there is memory for a file");
    for (std::size_t written = 0; written < content.size();) {
      const ssize_t count =
          ::write(descriptor_, content.data() + written, content.size() - written);
      require(count > 0, "a file in memory can be written");
      written += static_cast<std::size_t>(count);
    }
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return fmt::format("/proc/self/fd/{}", descriptor_); }

 private:
  int descriptor_;
};

/// A temporary folder with a file that has the input as its content.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& file) : file_(file) {
    std::string name = (std::filesystem::temp_directory_path() / "gossamer-fuzz-XXXXXX").string();
    require(::mkdtemp(name.data()) != nullptr, "there is a temporary folder");
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Another name of the file.
  void link(const std::string& name) const {
    std::filesystem::create_symlink(path_ / file_, path_ / name);
  }
  void write(std::span<const std::byte> content) const {
    std::ofstream out(path_ / file_, std::ios::binary);
    out.write(reinterpret_cast<const char*>(content.data()),
              static_cast<std::streamsize>(content.size()));
    out.close();
    require(static_cast<bool>(out), "a file can be written");
  }

 private:
  std::string file_;
  std::filesystem::path path_;
};

inline std::string_view text_of(std::span<const std::byte> input) {
  return {reinterpret_cast<const char*>(input.data()), input.size()};
}

inline std::span<const unsigned char> raw(std::span<const std::byte> input) {
  return {reinterpret_cast<const unsigned char*>(input.data()), input.size()};
}

/// Every error is a sentence.
template <class T>
bool ok(const Result<T>& result) {
  if (!result.ok()) require(!result.error().message.empty(), "an error has a message");
  return result.ok();
}

}  // namespace gossamer::fuzz
