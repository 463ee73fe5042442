#include "base/philox.hpp"

#include <cmath>
#include <numbers>
#include <utility>

#include "base/check.hpp"

namespace gossamer {

RandomStream::RandomStream(std::uint64_t seed, std::uint32_t peer, Purpose purpose,
                           std::uint64_t step)
    : key_(seed, peer, purpose, step) {}

void RandomStream::refill() {
  block_ = key_.block(next_block_);
  ++next_block_;  // 2^32 blocks of four: more than any stream here draws
  GOSSAMER_CHECK(next_block_ != 0, "random stream exhausted");
  used_ = 0;
}

std::uint32_t RandomStream::next_u32() {
  if (used_ == 4) refill();
  return block_[used_++];
}

std::uint64_t RandomStream::next_u64() {
  const std::uint64_t high = next_u32();
  return high << 32 | next_u32();
}

float RandomStream::next_float() { return unit_float(next_u32()); }

double RandomStream::next_double() {
  const std::uint32_t high = next_u32();
  return unit_double(high, next_u32());
}

std::uint32_t RandomStream::below(std::uint32_t bound) {
  GOSSAMER_CHECK(bound > 0, "below(0) has no answer");
  const std::uint32_t threshold = -bound % bound;
  for (;;) {
    const std::uint64_t product = std::uint64_t{next_u32()} * bound;
    if (static_cast<std::uint32_t>(product) >= threshold)
      return static_cast<std::uint32_t>(product >> 32);
  }
}

double RandomStream::next_normal() {
  if (has_spare_normal_) {
    has_spare_normal_ = false;
    return spare_normal_;
  }
  const double radius = std::sqrt(-2.0 * std::log(1.0 - next_double()));  // 1−u: never log(0)
  const double angle = 2.0 * std::numbers::pi * next_double();
  spare_normal_ = radius * std::sin(angle);
  has_spare_normal_ = true;
  return radius * std::cos(angle);
}

double RandomStream::next_gamma(double shape) {
  GOSSAMER_CHECK(shape > 0, "a gamma variate needs a positive shape");
  if (shape < 1) {  // boost: Gamma(a) = Gamma(a + 1) · U^{1/a}
    const double boosted = next_gamma(shape + 1);
    return boosted * std::pow(1.0 - next_double(), 1.0 / shape);
  }
  const double d = shape - 1.0 / 3.0, c = 1.0 / std::sqrt(9.0 * d);
  for (;;) {
    const double x = next_normal();
    const double v = (1 + c * x) * (1 + c * x) * (1 + c * x);
    if (v <= 0) continue;
    const double u = 1.0 - next_double();
    if (std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

void RandomStream::shuffle(std::span<std::uint32_t> values) {
  for (std::size_t i = values.size(); i > 1; --i)
    std::swap(values[i - 1], values[below(static_cast<std::uint32_t>(i))]);
}

}  // namespace gossamer
