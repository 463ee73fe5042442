// What the two ends of a session trial share: the clock, the random numbers, the sizes of what they
// send, and the report.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.hpp"
#include "base/philox.hpp"
#include "gossip/scheduler.hpp"
#include "simulator/names.hpp"
#include "simulator/session/session_trial.hpp"

namespace gossamer::simulator {

struct TrialOptions {
  Time latency{0}, pause{0};  ///< one way; between two messages
  std::size_t room = 0, longest_row = 0, longest_chunk = 0;
  int messages = 0, window = 0;
  double delays = 0;  ///< the share of chunks that their receiver holds for a while
  bool may_lose = false;
  std::array<bool, 2> shares{};  ///< whether an end has memory that the other may read
};

struct TrialContext {
  explicit TrialContext(std::uint64_t seed) : random(seed, kNoPeer, Purpose::scenario, 5) {}

  Time draw_delay(Time most) {
    return Time(std::llround(static_cast<double>(most.count()) * random.next_double()));
  }
  void add_violation(std::string sentence) {
    constexpr std::size_t kMost = 5;
    if (report.violations.size() < kMost) report.violations.push_back(std::move(sentence));
  }
  void add_to_hash(std::initializer_list<std::uint64_t> words) {
    std::vector<std::uint64_t> all{report.hash};
    all.insert(all.end(), words);
    report.hash = hash64(std::as_bytes(std::span<const std::uint64_t>(all)));
  }

  VirtualScheduler scheduler;
  RandomStream random;
  TrialOptions options;
  TrialReport report;
};

}  // namespace gossamer::simulator
