#include "base/quantity_text.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <iterator>
#include <utility>

namespace gossamer {

std::string count_text(double count) {
  if (!(count >= 1e5)) return fmt::format("{:.0f}", count);
  for (const auto& [unit, name] :
       {std::pair(1e12, "trillion"), {1e9, "billion"}, {1e6, "million"}, {1e3, "thousand"}})
    if (count >= unit && count < 1e15) return fmt::format("{:.3g} {}", count / unit, name);
  return fmt::format("{:.3g}", count);
}

std::string bytes_text(double bytes) {
  const char* const units[] = {"B", "KB", "MB", "GB", "TB", "PB", "EB"};
  std::size_t unit = 0;
  for (; bytes >= 1000 && unit + 1 < std::size(units); ++unit) bytes /= 1000;
  return bytes < 1000 ? fmt::format("{:.3g} {}", bytes, units[unit])
                      : fmt::format("{:.2e} {}", bytes, units[unit]);
}

}  // namespace gossamer
