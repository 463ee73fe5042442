#include "tests/fuzz/target.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace gossamer::fuzz {

std::vector<Target> all_targets() {
  std::vector<Target> all;
  for (const auto& group : {data_targets(), file_targets(), wire_targets(), exchange_targets()})
    all.insert(all.end(), group.begin(), group.end());
  return all;
}

void require(bool holds, const char* property) {
  if (holds) return;
  std::fprintf(stderr, "the property does not hold: %s\n", property);
  std::abort();
}

Bytes bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::uint64_t Source::number(int bytes) {
  std::uint64_t value = 0;
  const auto taken = take(static_cast<std::size_t>(bytes));
  if (!taken.empty()) std::memcpy(&value, taken.data(), taken.size());
  return value;
}

std::span<const std::byte> Source::take(std::size_t count) {
  const auto taken = input_.first(std::min(count, input_.size()));
  input_ = input_.subspan(taken.size());
  return taken;
}

}  // namespace gossamer::fuzz
