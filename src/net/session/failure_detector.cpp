#include "net/session/failure_detector.hpp"

#include <algorithm>
#include <utility>

namespace gossamer::net {

using namespace std::chrono_literals;

namespace {

// Downtime shrinks this many times more slowly than it grows.
constexpr int kForgivenessFactor = 4;

}  // namespace

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

void FailureDetector::on_progress() { down_ = false; }

gossip::Time FailureDetector::on_break(std::string why) {
  last_break_ = std::move(why);
  ++breaks_;
  if (std::exchange(down_, true)) return back_off_.next();
  back_off_.reset();
  return 0ns;
}

bool FailureDetector::on_damaged_frame(std::uint64_t received) {
  return std::exchange(damaged_at_, received) != received;
}

}  // namespace gossamer::net
