#include "base/shared_memory.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

using namespace gossamer;

namespace {

std::unique_ptr<SharedMemory> reserved() {
  auto memory = SharedMemory::reserve();
  REQUIRE_MESSAGE(memory.ok(), (memory.ok() ? "" : memory.error().message));
  return std::move(memory).value();
}

std::span<float> floats(void* block, std::size_t count) {
  REQUIRE(block != nullptr);
  return {static_cast<float*>(block), count};
}

/// The values at the place of `row` as a view shows them.
std::span<const float> seen(const SharedMemory& memory, const SharedMemoryView& view,
                            std::span<const float> row) {
  const auto offset = memory.offset_of(std::as_bytes(row));
  REQUIRE(offset.has_value());
  return {reinterpret_cast<const float*>(view.bytes().data() + *offset), row.size()};
}

std::string refusal(const SharedMemoryName& name) {
  const auto view = SharedMemoryView::map(name);
  CHECK_FALSE(view.ok());
  return view.ok() ? "" : view.error().message;
}

}  // namespace

TEST_CASE("blocks lie within the range, and are used again") {
  const auto memory = reserved();
  const auto first = floats(memory->allocate(100'000 * sizeof(float)), 100'000);
  const auto second = floats(memory->allocate(1), 1);
  CHECK(reinterpret_cast<std::uintptr_t>(first.data()) % 64 == 0);
  std::ranges::fill(first, 1.0F);
  const auto offset = memory->offset_of(std::as_bytes(first));
  REQUIRE(offset.has_value());
  CHECK(memory->offset_of(std::as_bytes(first.subspan(7, 2))) == *offset + 28);
  CHECK_FALSE(memory->offset_of(std::as_bytes(std::span(first.data() + 7, first.size() + 2000))));
  const std::vector<float> heap(10);
  CHECK_FALSE(memory->offset_of(std::as_bytes(std::span(heap))));
  CHECK_FALSE(memory->release(second.data() + 1));
  CHECK(memory->release(first.data()));
  CHECK_FALSE(memory->release(first.data()));
  CHECK_FALSE(memory->offset_of(std::as_bytes(first)));
  const auto again = floats(memory->allocate(100'000 * sizeof(float)), 100'000);
  CHECK(again.data() == first.data());
  CHECK(memory->allocate(0) == nullptr);
  CHECK(memory->allocate(memory->name().bytes) == nullptr);
  CHECK(memory->allocate(SIZE_MAX) == nullptr);
}

TEST_CASE("another process sees what is written, and keeps it when the owner is gone") {
  auto memory = reserved();
  const auto row = floats(memory->allocate(50'000 * sizeof(float)), 50'000);
  std::ranges::fill(row, 2.0F);
  int go[2];
  REQUIRE(::pipe(go) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {  // no doctest here: the exit code is the result
    const auto view = SharedMemoryView::map(memory->name());
    if (!view.ok()) ::_exit(1);
    const auto offset = memory->offset_of(std::as_bytes(row));
    const float* values =
        reinterpret_cast<const float*>((*view)->bytes().data() + offset.value_or(0));
    char token = 0;
    if (values[49'999] != 2.0F || ::read(go[0], &token, 1) != 1) ::_exit(2);
    ::_exit(values[0] == 3.0F ? 0 : 3);
  }
  row.front() = 3.0F;
  REQUIRE(::write(go[1], "x", 1) == 1);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);

  const auto view = SharedMemoryView::map(memory->name());
  REQUIRE(view.ok());
  const auto values = seen(*memory, **view, row);
  memory.reset();
  CHECK(values.front() == 3.0F);
  CHECK(values.back() == 2.0F);
}

TEST_CASE("a child process keeps what it writes to itself, and allocates nothing") {
  const auto memory = reserved();
  const auto row = floats(memory->allocate(50'000 * sizeof(float)), 50'000);
  std::ranges::fill(row, 2.0F);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const bool same = row.front() == 2.0F && row.back() == 2.0F;
    std::ranges::fill(row, 4.0F);
    const bool none = memory->allocate(100'000) == nullptr;
    ::_exit(same && none && memory->release(row.data()) ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(std::ranges::all_of(row, [](float value) { return value == 2.0F; }));
}

TEST_CASE("only the memory that was named is mapped, and once") {
  const auto memory = reserved();
  const SharedMemoryName name = memory->name();
  const auto view = SharedMemoryView::map(name);
  REQUIRE(view.ok());
  CHECK((*view)->bytes().data() == (*SharedMemoryView::map(name))->bytes().data());

  SharedMemoryName other = name;
  other.token += 1;
  CHECK(refusal(other).ends_with("is the memory of another run"));
  other = name, other.bytes -= 4096;
  CHECK(refusal(other).find("is not sealed memory of this user and that length") !=
        std::string::npos);
  other = name, other.bytes = 0;
  CHECK(refusal(other).find("is not sealed memory") != std::string::npos);
  other = name, other.descriptor = 1'000'000;
  CHECK(refusal(other).find("No such file") != std::string::npos);
  other = name, other.process = 0xFFFFFFFF;
  CHECK(refusal(other).find("No such file") != std::string::npos);

  // Memory of the right name that could be cut short, and files of other kinds.
  const int unsealed = ::memfd_create("gossamer rows", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  REQUIRE(::ftruncate(unsealed, static_cast<off_t>(name.bytes)) == 0);
  other = name, other.descriptor = static_cast<std::uint32_t>(unsealed);
  CHECK(refusal(other).find("is not sealed memory") != std::string::npos);
  ::close(unsealed);
  int fifo[2];
  REQUIRE(::pipe(fifo) == 0);
  other.descriptor = static_cast<std::uint32_t>(fifo[0]);
  CHECK(refusal(other).ends_with("is no memory that is shared"));
  const int file = ::open("/dev/null", O_RDONLY);
  other.descriptor = static_cast<std::uint32_t>(file);
  CHECK(refusal(other).ends_with("is no memory that is shared"));
  for (const int each : {fifo[0], fifo[1], file}) ::close(each);
}
