// The k values of largest magnitude, scattered adds, and stratified samples.
#include <algorithm>
#include <array>
#include <atomic>
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

constexpr int kTopBits = 11, kLowBits = 20;  // of a magnitude
constexpr std::size_t kTopDigits = std::size_t{1} << kTopBits;

/// How many values have each top digit.
std::array<std::size_t, kTopDigits> top_digits(const float* values, std::size_t length) {
  // Neighbours often share a digit, and an increment waits for the one before of the same counter.
  constexpr std::size_t kTables = 4;
  std::array<std::array<std::uint32_t, kTopDigits>, kTables> tables = {};
  const auto add = [&](std::size_t table, std::size_t i) {
    ++tables[table][magnitude(values[i]) >> kLowBits];
  };
  std::size_t i = 0;
  for (; i + kTables <= length; i += kTables)
    for (std::size_t table = 0; table < kTables; ++table) add(table, i + table);
  for (; i < length; ++i) add(0, i);
  std::array<std::size_t, kTopDigits> counts = {};
  for (const auto& table : tables)
    for (std::size_t digit = 0; digit < kTopDigits; ++digit) counts[digit] += table[digit];
  return counts;
}

/// The magnitudes with this top digit, which `count` values have. None where they are many, as of a
/// row of zeros: memory for a copy is not set aside.
std::vector<std::uint32_t> magnitudes_with(std::size_t top, const float* values, std::size_t length,
                                           std::size_t count) {
  std::vector<std::uint32_t> found;
  if (count > length / 16) return found;
  // One more than there are: every value is written, and those with another digit are overwritten.
  found.resize(count + 1);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < length; ++i) {
    const std::uint32_t m = magnitude(values[i]);
    found[kept] = m;
    kept += static_cast<std::size_t>(m >> kLowBits == top);
  }
  found.pop_back();
  return found;
}

/// Radix selection from the top digit down: counts the values with each digit, finds the digit in
/// which the count-th value lies, and goes on with the values that have it.
Threshold find_threshold(const float* values, std::size_t length, std::size_t count) {
  const auto with_top = top_digits(values, length);
  std::size_t top = kTopDigits - 1;
  for (; with_top[top] < count; --top) count -= with_top[top];
  const std::vector<std::uint32_t> candidates = magnitudes_with(top, values, length, with_top[top]);
  auto prefix = static_cast<std::uint32_t>(top);
  constexpr int kBits = kLowBits / 2;
  constexpr std::uint32_t kMask = (1U << kBits) - 1;
  for (const int shift : {kBits, 0}) {
    std::array<std::size_t, kMask + 1> with_digit = {};
    const auto add = [&](std::uint32_t m) {
      if (m >> (shift + kBits) == prefix) ++with_digit[m >> shift & kMask];
    };
    if (!candidates.empty()) std::ranges::for_each(candidates, add);
    else
      for (std::size_t i = 0; i < length; ++i) add(magnitude(values[i]));
    std::uint32_t digit = kMask;
    for (; with_digit[digit] < count; --digit) count -= with_digit[digit];
    prefix = prefix << kBits | digit;
  }
  return {prefix, count};
}

/// Decided without a branch for each value.
bool all_below(const float* values, std::size_t length, std::uint32_t threshold) {
  std::uint32_t largest = 0;
  for (std::size_t i = 0; i < length; ++i) largest = std::max(largest, magnitude(values[i]));
  return largest < threshold;
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
  constexpr std::size_t kBlock = 16;
  for (std::size_t begin = 0; taken < r.count; begin += kBlock) {
    const std::size_t end = std::min(begin + kBlock, r.length);
    if (all_below(r.values + begin, end - begin, threshold.magnitude)) continue;
    for (std::size_t i = begin; i < end && taken < r.count; ++i) {
      const std::uint32_t m = magnitude(r.values[i]);
      if (m < threshold.magnitude) continue;
      if (m == threshold.magnitude && threshold.equal == 0) continue;
      if (m == threshold.magnitude) --threshold.equal;
      r.chosen[taken] = r.values[i];
      r.indices[taken] = static_cast<std::uint32_t>(i);
      ++taken;
    }
  }
}

void run(const ScatterAddRequest& r) {
  if (!are_sound(r)) {
    std::uint64_t no_fault = 0;  // another thread may read the word
    if (r.fault != nullptr)
      std::atomic_ref(*r.fault).compare_exchange_strong(no_fault, r.tag, std::memory_order_release,
                                                        std::memory_order_relaxed);
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
