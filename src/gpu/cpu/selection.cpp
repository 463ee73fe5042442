// The k values of largest magnitude, scattered adds, and stratified samples.
#include <bit>
#include <vector>

#include "gpu/cpu/codecs.hpp"

namespace gossamer::gpu {
namespace {

/// Orders floats by |x|, infinity and NaN last.
std::uint32_t magnitude(float value) { return std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFF; }

/// The choice: all values above `magnitude`, and the first `equal` values of that magnitude.
struct Threshold {
  std::uint32_t magnitude;
  std::size_t equal;
};

/// Radix selection from the top digit down: counts the values with each digit, and finds the digit
/// in which the count-th value lies.
Threshold find_threshold(const float* values, std::size_t length, std::size_t count) {
  std::uint32_t prefix = 0;
  int shift = 31;
  std::vector<std::size_t> with_digit;
  for (const int bits : {11, 10, 10}) {
    const int above = shift;
    shift -= bits;
    const std::uint32_t mask = (1U << bits) - 1;
    with_digit.assign(mask + 1, 0);
    for (std::size_t i = 0; i < length; ++i) {
      const std::uint32_t m = magnitude(values[i]);
      if (m >> above == prefix) ++with_digit[m >> shift & mask];
    }
    std::uint32_t digit = mask;
    for (; with_digit[digit] < count; --digit) count -= with_digit[digit];
    prefix = prefix << bits | digit;
  }
  return {prefix, count};
}

/// Whether the indices ascend strictly and lie below the length.
bool are_sound(const ScatterAddRequest& r) {
  for (std::size_t i = 0; i < r.count; ++i)
    if (r.indices[i] >= r.length || (i > 0 && r.indices[i] <= r.indices[i - 1])) return false;
  return true;
}

/// Calls at(i, index of the i-th sampled value) in ascending order of i.
template <class At>
void for_sampled(const StratifiedSample& sample, std::size_t length, At at) {
  const RandomKey key(sample.seed, sample.peer, sample.purpose, sample.step);
  std::array<std::uint32_t, 4> numbers = {};
  for (std::size_t i = 0; i < sample.count; ++i) {
    if (i % 4 == 0) numbers = key.block(static_cast<std::uint32_t>(i / 4));
    at(i, sampled_index(i, numbers[i % 4], length, sample.count));
  }
}

}  // namespace

void run(const TopKRequest& r) {
  if (r.count == 0) return;
  Threshold threshold = find_threshold(r.values, r.length, r.count);
  std::size_t taken = 0;
  for (std::size_t i = 0; taken < r.count; ++i) {
    const std::uint32_t m = magnitude(r.values[i]);
    if (m < threshold.magnitude) continue;
    if (m == threshold.magnitude && threshold.equal == 0) continue;
    if (m == threshold.magnitude) --threshold.equal;
    r.chosen[taken] = r.values[i];
    r.indices[taken] = static_cast<std::uint32_t>(i);
    ++taken;
  }
}

void run(const ScatterAddRequest& r) {
  if (!are_sound(r)) {
    if (r.fault != nullptr && *r.fault == 0) *r.fault = r.tag;
    return;
  }
  for (std::size_t i = 0; i < r.count; ++i) r.values[r.indices[i]] += r.chosen[i];
}

void run(const SampleRequest& r) {
  for_sampled(r.sample, r.length,
              [&](std::size_t i, std::size_t index) { r.chosen[i] = r.values[index]; });
}

void run(const AddSampledRequest& r) {
  for_sampled(r.sample, r.length,
              [&](std::size_t i, std::size_t index) { r.values[index] += r.chosen[i]; });
}

}  // namespace gossamer::gpu
