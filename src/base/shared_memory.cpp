#include "base/shared_memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/descriptor.hpp"

namespace gossamer {
namespace {

constexpr const char* kFileName = "gossamer rows";
constexpr std::string_view kLinkTarget = "/memfd:gossamer rows";
// Rows of this size may lie in huge pages, where the system has them.
constexpr std::uint64_t kHugePage = std::uint64_t{2} << 20;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

std::uint64_t page_bytes() { return static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)); }

std::uint64_t rounded(std::uint64_t bytes, std::uint64_t boundary) {
  return (bytes + boundary - 1) / boundary * boundary;
}

Error refused(ErrorKind kind, const std::string& what) {
  return {kind, fmt::format("{}: {}", what, std::generic_category().message(errno))};
}
constexpr const char* kForOthers = "memory for other processes";

/// Why memory of that size must not be asked for: its pages could be missing later, or the size of
/// its file ends the process.
std::optional<Error> obstacle(std::uint64_t bytes) {
  char overcommit = '0';
  std::ifstream("/proc/sys/vm/overcommit_memory") >> overcommit;
  if (overcommit == '2')
    return Error{ErrorKind::internal, fmt::format("{}: vm.overcommit_memory is 2", kForOthers)};
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes)
    return Error{ErrorKind::internal, fmt::format("{}: the size of files is limited", kForOthers)};
  return std::nullopt;
}

/// All memories of this process. Never destroyed: threads and forks may outlive main().
struct Memories {
  std::mutex mutex;
  std::set<SharedMemory*> own;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>,
           std::weak_ptr<const SharedMemoryView>>
      views;  ///< by process, descriptor and token
};
Memories& memories() {
  static auto* all = new Memories;
  return *all;
}

std::uint64_t random_token() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

/// Whether the file is memory of this user's that stays `bytes` long.
bool is_sealed_memory(int descriptor, std::uint64_t bytes) {
  struct stat status{};
  const int seals = ::fcntl(descriptor, F_GET_SEALS);
  return seals >= 0 && (seals & kSeals) == kSeals && ::fstat(descriptor, &status) == 0 &&
         S_ISREG(status.st_mode) && status.st_uid == ::geteuid() &&
         static_cast<std::uint64_t>(status.st_size) == bytes;
}

}  // namespace

Result<std::unique_ptr<SharedMemory>> SharedMemory::reserve() {
  const std::uint64_t bytes =
      rounded(static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * page_bytes(), kHugePage);
  if (const auto error = obstacle(bytes)) return *error;
  const int file = ::memfd_create(kFileName, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0) return refused(ErrorKind::internal, kForOthers);
  void* range = MAP_FAILED;
  if (::ftruncate(file, static_cast<off_t>(bytes)) == 0 && ::fcntl(file, F_ADD_SEALS, kSeals) == 0)
    range = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (range == MAP_FAILED) {
    Error error = refused(ErrorKind::internal, kForOthers);
    ::close(file);
    return error;
  }
  const SharedMemoryName name{static_cast<std::uint32_t>(::getpid()),
                              static_cast<std::uint32_t>(file), bytes, random_token()};
  ::madvise(range, bytes, MADV_DONTDUMP);  // a core dump would fill the range
  std::memcpy(range, &name.token, sizeof name.token);
  return std::unique_ptr<SharedMemory>(new SharedMemory(static_cast<std::byte*>(range), name));
}

SharedMemory::SharedMemory(std::byte* range, const SharedMemoryName& name)
    : range_(range), name_(name) {
  static const int registered = ::pthread_atfork([] { memories().mutex.lock(); },
                                                 [] { memories().mutex.unlock(); }, keep_to_child);
  static_cast<void>(registered);
  const std::scoped_lock lock(memories().mutex);
  memories().own.insert(this);
}

void SharedMemory::keep_to_child() {
  for (SharedMemory* each : memories().own)
    ::mmap(each->range_, each->name_.bytes, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, static_cast<int>(each->name_.descriptor), 0);
  memories().mutex.unlock();
}

SharedMemory::~SharedMemory() {
  {
    const std::scoped_lock lock(memories().mutex);
    memories().own.erase(this);
  }
  ::munmap(range_, name_.bytes);
  ::close(static_cast<int>(name_.descriptor));
}

void* SharedMemory::allocate(std::size_t bytes) {
  const bool in_child = static_cast<std::uint32_t>(::getpid()) != name_.process;
  if (bytes == 0 || bytes > name_.bytes || in_child) return nullptr;
  const std::uint64_t boundary = bytes < kHugePage ? page_bytes() : kHugePage;
  const std::uint64_t length = rounded(bytes, page_bytes());
  const std::scoped_lock lock(mutex_);
  std::uint64_t begin = rounded(page_bytes(), boundary);  // behind the token
  for (const auto& [offset, taken] : blocks_) {
    if (offset >= begin + length) break;
    begin = std::max(begin, rounded(offset + taken, boundary));
  }
  if (begin > name_.bytes || name_.bytes - begin < length) return nullptr;
  blocks_[begin] = length;
  if (boundary == kHugePage) ::madvise(range_ + begin, length, MADV_HUGEPAGE);
  return range_ + begin;
}

bool SharedMemory::release(void* block) {
  const auto* address = static_cast<std::byte*>(block);
  const std::scoped_lock lock(mutex_);
  const auto found =
      address < range_ ? blocks_.end() : blocks_.find(static_cast<std::uint64_t>(address - range_));
  if (found == blocks_.end()) return false;
  blocks_.erase(found);
  return true;
}

std::optional<std::uint64_t> SharedMemory::offset_of(std::span<const std::byte> data) const {
  if (data.data() < range_ || data.data() >= range_ + name_.bytes) return std::nullopt;
  const auto offset = static_cast<std::uint64_t>(data.data() - range_);
  const std::scoped_lock lock(mutex_);
  auto block = blocks_.upper_bound(offset);
  if (block == blocks_.begin()) return std::nullopt;
  --block;
  if (offset + data.size() > block->first + block->second) return std::nullopt;
  return offset;
}

Result<std::shared_ptr<const SharedMemoryView>> SharedMemoryView::map(
    const SharedMemoryName& name) {
  const std::scoped_lock lock(memories().mutex);
  std::erase_if(memories().views, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<const SharedMemoryView>& known =
      memories().views[{name.process, name.descriptor, name.token}];
  if (auto view = known.lock(); view && view->bytes().size() == name.bytes) return view;
  const std::string path = fmt::format("/proc/{}/fd/{}", name.process, name.descriptor);
  // Before it is opened: to open any other file could block, or have effects.
  std::array<char, 64> target{};
  const ssize_t length = ::readlink(path.c_str(), target.data(), target.size());
  if (length < 0) return refused(ErrorKind::invalid, path);
  if (!std::string_view(target.data(), static_cast<std::size_t>(length)).starts_with(kLinkTarget))
    return Error{ErrorKind::invalid, path + " is no memory that is shared"};
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.is_open()) return refused(ErrorKind::invalid, path);
  if (name.bytes < sizeof name.token || !is_sealed_memory(file.get(), name.bytes))
    return Error{ErrorKind::invalid, path + " is not sealed memory of this user and that length"};
  const void* range =
      ::mmap(nullptr, name.bytes, PROT_READ, MAP_SHARED | MAP_NORESERVE, file.get(), 0);
  if (range == MAP_FAILED) return refused(ErrorKind::invalid, path);
  ::madvise(const_cast<void*>(range), name.bytes, MADV_DONTDUMP);
  std::shared_ptr<const SharedMemoryView> view(
      new SharedMemoryView({static_cast<const std::byte*>(range), name.bytes}));
  std::uint64_t token = 0;
  std::memcpy(&token, range, sizeof token);
  if (token != name.token) return Error{ErrorKind::invalid, path + " is the memory of another run"};
  known = view;
  return view;
}

SharedMemoryView::~SharedMemoryView() {
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace gossamer
