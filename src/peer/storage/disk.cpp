#include "peer/storage/disk.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace gossamer::peer {
namespace {

namespace fs = std::filesystem;

int result(int returned) { return returned < 0 ? -errno : returned; }

class RealDisk final : public Disk {
 public:
  int create(const fs::path& path) override {
    return result(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  }
  std::int64_t write(int descriptor, std::uint64_t offset, std::string_view bytes) override {
    for (;;) {
      const ssize_t written =
          ::pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (written >= 0) return written;
      if (errno != EINTR) return -errno;
    }
  }
  int sync(int descriptor) override { return result(::fsync(descriptor)); }
  int close(int descriptor) override { return result(::close(descriptor)); }
  int rename(const fs::path& from, const fs::path& to) override {
    return result(::rename(from.c_str(), to.c_str()));
  }
  int remove(const fs::path& path) override { return result(::unlink(path.c_str())); }
  int sync_path(const fs::path& path) override {
    const int descriptor = ::open(path.empty() ? "." : path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
      return errno == EACCES ? 0 : -errno;  // a folder with write but without read permission
    const int synced = result(::fsync(descriptor));
    ::close(descriptor);
    return synced == -EINVAL || synced == -ENOTSUP ? 0 : synced;
  }
};

}  // namespace

Disk& real_disk() {
  static RealDisk disk;
  return disk;
}

}  // namespace gossamer::peer
