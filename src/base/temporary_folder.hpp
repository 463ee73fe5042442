// A folder for files that are deleted after use.
#pragma once

#include <filesystem>

#include "base/result.hpp"

namespace gossamer {

/// A new folder in TMPDIR (else /tmp) that this user alone may read; it is deleted with the object.
class TemporaryFolder {
 public:
  /// Errors (data) name the folder that cannot be made, and the system's reason.
  static Result<TemporaryFolder> make();
  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();

  /// Absolute.
  const std::filesystem::path& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path path_;
};

}  // namespace gossamer
