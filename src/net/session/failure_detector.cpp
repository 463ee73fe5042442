#include "net/session/failure_detector.hpp"

#include <algorithm>
#include <utility>

namespace gossamer::net {

using namespace std::chrono_literals;

namespace {

constexpr gossip::Time kFirstPause = 50ms, kLongestPause = 1s;
// Downtime shrinks this many times more slowly than it grows.
constexpr int kForgivenessFactor = 4;

}  // namespace

gossip::Time TickClock::advance(gossip::Time now) {
  return std::min(now - std::exchange(last_, now), 2 * interval_);
}

FailureDetector::Finding FailureDetector::on_tick(gossip::Time now, gossip::Time counted,
                                                  const Conditions& conditions) {
  if (conditions.attached && !conditions.resuming && now - attached_at_ > failure_timeout_ / 2)
    down_ = false;
  downtime_ = down_ ? downtime_ + counted
                    : std::max<gossip::Time>(downtime_ - counted / kForgivenessFactor, 0ns);
  if (downtime_ > failure_timeout_) return Finding::down;
  const bool recovered = std::exchange(recovered_, false);
  if (!conditions.attached) return recovered ? Finding::recovered : Finding::alive;
  if (conditions.waiting) idle_time_ += counted;
  if (idle_time_ > failure_timeout_) return Finding::silent;
  if (idle_time_ > failure_timeout_ / 2 && !conditions.closing && !std::exchange(suspected_, true))
    return Finding::suspected;
  return recovered ? Finding::recovered : Finding::alive;
}

void FailureDetector::on_attach(gossip::Time now) {
  attached_at_ = now;
  idle_time_ = 0ns;
}

void FailureDetector::on_bytes() {
  if (std::exchange(suspected_, false)) recovered_ = true;
}

void FailureDetector::on_progress() {
  down_ = false;
  failed_attempts_ = 0;
}

gossip::Time FailureDetector::on_break(std::string why) {
  last_break_ = std::move(why);
  ++breaks_;
  failed_attempts_ = down_ ? failed_attempts_ + 1 : 0;
  down_ = true;
  if (failed_attempts_ == 0) return 0ns;
  return std::min<gossip::Time>(kFirstPause * (1 << std::min(failed_attempts_ - 1, 8)),
                                kLongestPause);
}

bool FailureDetector::on_damaged_frame(std::uint64_t received) {
  return std::exchange(damaged_at_, received) != received;
}

}  // namespace gossamer::net
