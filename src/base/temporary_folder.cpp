#include "base/temporary_folder.hpp"

#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

namespace gossamer {

namespace fs = std::filesystem;

Result<TemporaryFolder> TemporaryFolder::make() {
  std::error_code error;
  const char* named = std::getenv("TMPDIR");
  const bool is_empty = named != nullptr && *named == '\0';
  fs::path folder = is_empty ? fs::path("/tmp") : fs::temp_directory_path(error);
  if (!error) folder = fs::absolute(folder, error);
  if (error)
    return data_error(fmt::format("TMPDIR: '{}' is no folder for temporary files: {}",
                                  named != nullptr ? named : "", error.message()));
  std::string path = (folder / "gossamer-XXXXXX").string();
  if (::mkdtemp(path.data()) == nullptr)
    return data_error(fmt::format("cannot make the folder {}: {}; TMPDIR may name another place",
                                  path, std::strerror(errno)));
  return TemporaryFolder(path);
}

TemporaryFolder::TemporaryFolder(TemporaryFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})) {}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

}  // namespace gossamer
