#include "net/run/admission.hpp"

#include <algorithm>
#include <utility>

#include "net/io/back_off.hpp"

namespace gossamer::net {

namespace {

constexpr int kMostDoublings = 16;  // of the time for which an overdue peer is barred

}  // namespace

void Admission::on_overdue(gossip::Time row_timeout) {
  bar_ = row_timeout * (1 << std::min(times_overdue_++, kMostDoublings));
}

/// A peer that violates the protocol, or that accepts connections and drops them, is not asked to
/// do so without end.
gossip::Time Admission::on_failure(gossip::Time now, const Failure& failure) {
  const gossip::Time bar = std::exchange(bar_, gossip::Time(0));
  const gossip::Time otherwise =
      failure.violated || failure.silent ? BackOff::kLongest : gossip::Time(0);
  const gossip::Time pause = bar > gossip::Time(0) ? bar : otherwise;
  if (failure.violated) barred_until_ = now + pause;
  return pause;
}

bool Admission::on_duplicate(gossip::Time now, gossip::Time failure_timeout) {
  if (!duplicate_since_) duplicate_since_ = now;
  if (now - *duplicate_since_ < failure_timeout) return false;
  return !std::exchange(duplicate_reported_, true);
}

}  // namespace gossamer::net
