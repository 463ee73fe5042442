#include "gpu/card_names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gossamer::gpu {

std::string card_names(std::span<const int> cards) {
  const bool run =
      cards.size() > 1 && cards.back() - cards.front() + 1 == static_cast<int>(cards.size());
  return run ? fmt::format("cuda:{}-{}", cards.front(), cards.back())
             : fmt::format("cuda:{}", fmt::join(cards, ","));
}

}  // namespace gossamer::gpu
