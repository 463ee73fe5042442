#include "peer/privacy/privacy_ledger.hpp"

#include <limits>

namespace gossamer::peer {

namespace {

/// A log is a file, and may have any number.
std::uint64_t saturated_sum(std::uint64_t a, std::uint64_t b) {
  return a + b < a ? std::numeric_limits<std::uint64_t>::max() : a + b;
}

}  // namespace

void PrivacyLedger::resume(std::size_t index, std::uint64_t steps, std::uint64_t logged,
                           std::uint64_t unlogged) {
  const std::uint64_t before = saturated_sum(logged, unlogged);
  repeated_.at(index) = before > steps ? before - steps : 0;
}

SpentPrivacy PrivacyLedger::spent(std::size_t index, double sampling, std::uint64_t steps) {
  const auto accountant =
      accountants_.try_emplace(sampling, sampling, options_.noise_multiplier).first;
  const std::uint64_t all = saturated_sum(steps, repeated_.at(index));
  return {all, accountant->second.epsilon(all, options_.delta)};
}

}  // namespace gossamer::peer
