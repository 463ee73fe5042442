// Memory that other processes of this machine can read in place. A process reserves a range of
// addresses once, allocates in it, and tells others its name; they map the whole range, read-only.
// The system frees the memory when the last process that maps it is gone, however that one ends:
// nothing has a name in a file system, so nothing can be left behind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "base/result.hpp"

namespace gossamer {

/// What a process must know to map the memory of another one.
struct SharedMemoryName {
  std::uint32_t process = 0, descriptor = 0;  ///< an open file of that process
  std::uint64_t bytes = 0;                    ///< length of the range
  std::uint64_t token = 0;  ///< random; the first word of the range, by which it is recognised

  bool operator==(const SharedMemoryName&) const = default;
};

/// A child process that is forked keeps what it writes to itself: it sees the values of its parent
/// until it writes a page, allocates nothing here, and lends nothing. Thread: any.
class SharedMemory {
 public:
  /// Reserves as many addresses as the machine has memory; memory itself is taken as blocks are
  /// written. Error (internal): the system allows none, and says why; or it promises memory only
  /// once (vm.overcommit_memory = 2), where a page that is missing ends the process.
  static Result<std::unique_ptr<SharedMemory>> reserve();
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  /// `bytes` of any values that begin at a page, or null if no range of that length is free.
  void* allocate(std::size_t bytes);
  /// Makes the range of a block from allocate() free for others; any other pointer is left alone,
  /// and the result is false. The memory stays, for processes that still read it.
  bool release(void* block);
  /// Bytes before `data` in the range; nothing if `data` is not within blocks from allocate().
  std::optional<std::uint64_t> offset_of(std::span<const std::byte> data) const;
  const SharedMemoryName& name() const { return name_; }

 private:
  SharedMemory(std::byte* range, const SharedMemoryName& name);
  /// Of the child, after a fork: the pages that it writes are its own.
  static void keep_to_child();

  std::byte* range_;
  SharedMemoryName name_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> blocks_;  ///< offset to length, of allocated blocks
};

/// The memory of another process, as this process sees it: the owner may change it at any time, but
/// cannot cut it short, so no access to it fails. Thread: any.
class SharedMemoryView {
 public:
  /// The view of that memory; there is one in a process, however often it is mapped. Errors
  /// (invalid): no such file in that process, not a memory of this user that can only stay as long
  /// as it is, or another token. Nothing of any other file is opened for longer than the check, and
  /// no open blocks.
  static Result<std::shared_ptr<const SharedMemoryView>> map(const SharedMemoryName& name);
  ~SharedMemoryView();
  SharedMemoryView(const SharedMemoryView&) = delete;
  SharedMemoryView& operator=(const SharedMemoryView&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit SharedMemoryView(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> bytes_;
};

}  // namespace gossamer
