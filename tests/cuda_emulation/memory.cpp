#include "memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
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

constexpr std::size_t kRange = std::size_t{16}
                               << 30;  // addresses of a GPU; memory is used as it is touched
constexpr std::size_t kAlignment = 256;
constexpr std::size_t kGuard = 256;
constexpr std::size_t kStep = std::size_t{2} << 20;  // access changes in whole huge pages

std::size_t rounded_up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

/// What guards hold, from the first byte on: a signalling NaN as float and as double. A kernel that
/// adds to it changes it; a quiet NaN would stay as it is.
constexpr std::array<unsigned char, 8> kGuardBytes{0xFF, 0xFF, 0xBF, 0x7F, 0xFF, 0xFF, 0xF7, 0x7F};

void write_guard(char* memory, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i)
    memory[i] = static_cast<char>(kGuardBytes[i % kGuardBytes.size()]);
}

bool is_whole(const char* guard, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i)
    if (guard[i] != static_cast<char>(kGuardBytes[i % kGuardBytes.size()])) return false;
  return true;
}

}  // namespace

void Guarded::fill() const {
  ASAN_UNPOISON_MEMORY_REGION(begin, total);
  char* const end = begin + guard + bytes;
  write_guard(begin, guard);
  std::memset(begin + guard, kPoison, bytes);
  write_guard(end, total - guard - bytes);
  ASAN_POISON_MEMORY_REGION(begin, guard);
  ASAN_POISON_MEMORY_REGION(end, total - guard - bytes);
}

void Guarded::check(const char* kind) const {
  ASAN_UNPOISON_MEMORY_REGION(begin, total);
  const bool front_is_whole = is_whole(begin, guard);
  if (front_is_whole && is_whole(begin + guard + bytes, total - guard - bytes)) return;
  std::fprintf(stderr, "emulated GPU: something was written %s %s of %zu bytes\n",
               front_is_whole ? "past the end of" : "in front of", kind, bytes);
  std::abort();
}

Arena& arena() {
  static Arena* const the_arena =
      new Arena;  // outlives every static object that may still free GPU memory
  return *the_arena;
}

Arena::Arena() {
  void* range = ::mmap(nullptr, kMostGpus * kRange, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  GOSSAMER_CHECK(range != MAP_FAILED, "there are addresses for the memory of GPUs");
  base_ = static_cast<char*>(range);
  ::madvise(base_, kMostGpus * kRange, MADV_HUGEPAGE);
  for (std::size_t gpu = 0; gpu < ranges_.size(); ++gpu) ranges_[gpu].base = base_ + gpu * kRange;
}

void Arena::protect(Range& range, bool open) {
  if (range.end > 0) ::mprotect(range.base, range.end, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

Arena::Open::Open(Gpus gpus) : gpus_(gpus) {
  arena().mutex_.lock();
  for (int gpu = 0; gpu < kMostGpus; ++gpu) {
    Range& range = arena().ranges_[static_cast<std::size_t>(gpu)];
    if ((gpus_ & only(gpu)) != 0 && range.depth++ == 0) protect(range, true);
  }
}
Arena::Open::~Open() {
  for (int gpu = 0; gpu < kMostGpus; ++gpu) {
    Range& range = arena().ranges_[static_cast<std::size_t>(gpu)];
    if ((gpus_ & only(gpu)) != 0 && --range.depth == 0) protect(range, false);
  }
  arena().mutex_.unlock();
}

void Arena::grow(Range& range, std::size_t end) {
  GOSSAMER_CHECK(end <= kRange, "the range of GPU memory is large enough");
  if (end <= range.end) return;
  range.end = rounded_up(end, kStep);
  protect(range, true);
}

void* Arena::allocate(int gpu, std::size_t bytes, std::size_t limit) {
  const Open open(only(gpu));
  Range& range = ranges_[static_cast<std::size_t>(gpu)];
  if (bytes > limit || range.used > limit - bytes) return nullptr;
  const std::size_t total = kGuard + rounded_up(bytes, kAlignment) + kGuard;
  auto hole = range.holes.begin();
  while (hole != range.holes.end() && hole->second < total) ++hole;
  std::size_t place =
      range.blocks.empty() ? 0 : range.blocks.rbegin()->first + range.blocks.rbegin()->second.total;
  if (hole != range.holes.end()) {
    place = hole->first;
    if (hole->second > total) range.holes[place + total] = hole->second - total;
    range.holes.erase(hole);
  }
  grow(range, place + total);
  range.blocks[place] = {bytes, total};
  range.used += bytes;
  char* block = range.base + place;
  Guarded{block, kGuard, bytes, total}.fill();
  return block + kGuard;
}

bool Arena::release(void* memory) {
  const int gpu = gpu_of(memory);
  if (gpu < 0) return false;
  const Open open(only(gpu));
  Range& range = ranges_[static_cast<std::size_t>(gpu)];
  const auto place = static_cast<std::size_t>(static_cast<char*>(memory) - range.base) - kGuard;
  const auto found = range.blocks.find(place);
  if (found == range.blocks.end()) return false;
  const Block block = found->second;
  char* begin = range.base + place;
  Guarded{begin, kGuard, block.bytes, block.total}.check("a block");
  std::memset(begin, kPoison, block.total);
  ASAN_POISON_MEMORY_REGION(begin, block.total);
  range.used -= block.bytes;
  range.blocks.erase(found);

  auto& holes = range.holes;
  auto hole =
      holes.emplace(place, block.total).first;  // joined with the holes before and behind it
  if (const auto next = std::next(hole);
      next != holes.end() && hole->first + hole->second == next->first) {
    hole->second += next->second;
    holes.erase(next);
  }
  if (hole != holes.begin()) {
    if (const auto before = std::prev(hole); before->first + before->second == hole->first) {
      before->second += hole->second;
      holes.erase(hole);
      hole = before;
    }
  }
  // Free memory behind the last block is not a hole.
  if (range.blocks.empty() || hole->first > range.blocks.rbegin()->first) holes.erase(hole);
  return true;
}

bool Arena::holds(const void* memory, std::size_t bytes) {
  const int gpu = gpu_of(memory);
  if (gpu < 0) return false;
  const std::lock_guard lock(mutex_);
  const Range& range = ranges_[static_cast<std::size_t>(gpu)];
  const auto place = static_cast<std::size_t>(static_cast<const char*>(memory) - range.base);
  const auto next = range.blocks.upper_bound(place);
  if (next == range.blocks.begin()) return false;
  const auto& [begin, block] = *std::prev(next);
  return place >= begin + kGuard && place + bytes <= begin + kGuard + block.bytes;
}

bool Arena::touches(const void* memory, std::size_t bytes) const {
  const char* begin = static_cast<const char*>(memory);
  return begin + bytes > base_ && begin < base_ + kMostGpus * kRange;
}

int Arena::gpu_of(const void* memory) const {
  if (!touches(memory, 1)) return -1;
  return static_cast<int>(static_cast<std::size_t>(static_cast<const char*>(memory) - base_) /
                          kRange);
}

std::size_t Arena::used(int gpu) {
  const std::lock_guard lock(mutex_);
  return ranges_[static_cast<std::size_t>(gpu)].used;
}

int gpu_of(const void* memory) { return arena().gpu_of(memory); }

}  // namespace gossamer::emulation
