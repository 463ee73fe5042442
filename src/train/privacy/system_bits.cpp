#include "train/privacy/system_bits.hpp"

#include <sys/random.h>

#include <cerrno>
#include <cstddef>

#include "base/check.hpp"

namespace gossamer::train {

void SystemBits::fill(std::span<std::uint64_t> numbers) {
  std::span<std::byte> bytes = std::as_writable_bytes(numbers);
  while (!bytes.empty()) {
    const ssize_t got = getrandom(bytes.data(), bytes.size(), 0);
    GOSSAMER_CHECK(got > 0 || errno == EINTR, "the system has random numbers (getrandom)");
    if (got > 0) bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

}  // namespace gossamer::train
