#include "memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/check.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(memory, bytes) (void)0
#define ASAN_UNPOISON_MEMORY_REGION(memory, bytes) (void)0
#endif

namespace gossamer::emulation {
namespace {

constexpr std::size_t kRange = std::size_t{64} << 30;  // of addresses; memory is used as it is touched
constexpr std::size_t kAlignment = 256;
constexpr std::size_t kGuard = 256;
constexpr std::size_t kStep = std::size_t{2} << 20;  // the range is opened and closed in whole huge pages
constexpr int kPoison = 0xFF;                        // NaN in float and double, −1 in whole numbers

std::size_t rounded_up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

bool all_poison(const char* memory, std::size_t bytes) {
  return std::all_of(memory, memory + bytes, [](char byte) { return static_cast<unsigned char>(byte) == kPoison; });
}

}  // namespace

Arena& arena() {
  static Arena* const the_arena = new Arena;  // outlives every static object that may still free card memory
  return *the_arena;
}

Arena::Arena() {
  void* range = ::mmap(nullptr, kRange, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  GOSSAMER_CHECK(range != MAP_FAILED, "there are addresses for the memory of cards");
  base_ = static_cast<char*>(range);
  ::madvise(base_, kRange, MADV_HUGEPAGE);
}

void Arena::protect(bool open) {
  if (end_ > 0) ::mprotect(base_, end_, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

Arena::Open::Open() {
  arena().mutex_.lock();
  if (arena().depth_++ == 0) arena().protect(true);
}
Arena::Open::~Open() {
  if (--arena().depth_ == 0) arena().protect(false);
  arena().mutex_.unlock();
}

void Arena::grow(std::size_t end) {
  GOSSAMER_CHECK(end <= kRange, "the range of card memory is large enough");
  if (end <= end_) return;
  end_ = rounded_up(end, kStep);
  protect(true);
}

void* Arena::allocate(int card, std::size_t bytes, std::size_t limit) {
  const Open open;
  used_.resize(std::max(used_.size(), static_cast<std::size_t>(card) + 1));
  std::size_t& used = used_[static_cast<std::size_t>(card)];
  if (bytes > limit || used > limit - bytes) return nullptr;
  const std::size_t room = kGuard + rounded_up(bytes, kAlignment) + kGuard;
  auto hole = holes_.begin();
  while (hole != holes_.end() && hole->second < room) ++hole;
  std::size_t place = blocks_.empty() ? 0 : blocks_.rbegin()->first + blocks_.rbegin()->second.room;
  if (hole != holes_.end()) {
    place = hole->first;
    if (hole->second > room) holes_[place + room] = hole->second - room;
    holes_.erase(hole);
  }
  grow(place + room);
  blocks_[place] = {card, bytes, room};
  used += bytes;
  char* block = base_ + place;
  ASAN_UNPOISON_MEMORY_REGION(block, room);
  std::memset(block, kPoison, room);
  ASAN_POISON_MEMORY_REGION(block, kGuard);
  ASAN_POISON_MEMORY_REGION(block + kGuard + bytes, room - kGuard - bytes);
  return block + kGuard;
}

bool Arena::release(void* memory) {
  const Open open;
  const auto place = static_cast<std::size_t>(static_cast<char*>(memory) - base_) - kGuard;
  const auto found = touches(memory, 1) ? blocks_.find(place) : blocks_.end();
  if (found == blocks_.end()) return false;
  const Block block = found->second;
  char* begin = base_ + place;
  ASAN_UNPOISON_MEMORY_REGION(begin, block.room);
  if (!all_poison(begin, kGuard) || !all_poison(begin + kGuard + block.bytes, block.room - kGuard - block.bytes)) {
    std::fprintf(stderr, "emulated card: something was written %s a block of %zu bytes\n",
                 all_poison(begin, kGuard) ? "past the end of" : "in front of", block.bytes);
    std::abort();
  }
  std::memset(begin, kPoison, block.room);
  ASAN_POISON_MEMORY_REGION(begin, block.room);
  used_[static_cast<std::size_t>(block.card)] -= block.bytes;
  blocks_.erase(found);

  auto hole = holes_.emplace(place, block.room).first;  // joined with the holes before and behind it
  if (const auto next = std::next(hole); next != holes_.end() && hole->first + hole->second == next->first) {
    hole->second += next->second;
    holes_.erase(next);
  }
  if (hole != holes_.begin()) {
    if (const auto before = std::prev(hole); before->first + before->second == hole->first) {
      before->second += hole->second;
      holes_.erase(hole);
      hole = before;
    }
  }
  // A hole behind the last block is no hole.
  if (blocks_.empty() || hole->first > blocks_.rbegin()->first) holes_.erase(hole);
  return true;
}

bool Arena::holds(const void* memory, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (!touches(memory, 1)) return false;
  const auto place = static_cast<std::size_t>(static_cast<const char*>(memory) - base_);
  auto next = blocks_.upper_bound(place);
  if (next == blocks_.begin()) return false;
  const auto& [begin, block] = *std::prev(next);
  return place >= begin + kGuard && place + bytes <= begin + kGuard + block.bytes;
}

bool Arena::touches(const void* memory, std::size_t bytes) const {
  const char* begin = static_cast<const char*>(memory);
  return begin + bytes > base_ && begin < base_ + kRange;
}

std::size_t Arena::used(int card) {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(card) < used_.size() ? used_[static_cast<std::size_t>(card)] : 0;
}

}  // namespace gossamer::emulation
