#include "net/relay/detour.hpp"

#include <algorithm>
#include <utility>

namespace gossamer::net {

namespace {

using namespace std::chrono_literals;

// Calls under way at a time: one of the processes may not answer.
constexpr std::size_t kMostCalls = 3;
// A peer that waits does so at several processes, of which the other peer may not reach all.
constexpr std::size_t kMostWaits = 8;
// By how much a call that is not answered delays the next one (RFC 8305 has 250 ms).
constexpr gossip::Time kStagger = 250ms;
// Between two passes over all candidates.
constexpr gossip::Time kFirstPassPause = 100ms, kLongestPassPause = 5s;
// For how long a peer waits at one process: then it looks again which others there are.
constexpr gossip::Time kPatience = 5s;

}  // namespace

Detour::Detour(RealScheduler& scheduler, DetourOptions options)
    : scheduler_(scheduler),
      options_(std::move(options)),
      pauses_(kFirstPassPause, kLongestPassPause) {
  advance_after(options_.pause);
}

Detour::~Detour() { scheduler_.cancel(timer_); }

void Detour::advance_after(gossip::Time pause) {
  scheduler_.cancel(timer_);
  timer_ = scheduler_.after(pause, [this] { advance(); });
}

/// Begins the next call, or after the last one of a pass the next pass.
void Detour::advance() {
  const bool waits = options_.request.kind == RelayRequest::Kind::wait;
  if (calls_.size() >= (waits ? kMostWaits : kMostCalls) || !options_.is_wanted())
    return advance_after(kStagger);
  if (left_.empty()) {
    if (!calls_.empty()) return advance_after(kStagger);
    left_ = options_.candidates(pass_++);
    std::ranges::reverse(left_);
    if (left_.empty()) return advance_after(pauses_.next());
  }
  const RelayCandidate next = left_.back();
  left_.pop_back();
  call(next);
  advance_after(kStagger);
}

void Detour::call(const RelayCandidate& candidate) {
  const auto place = calls_.emplace(calls_.end());
  *place = std::make_unique<RelayCall>(
      scheduler_, RelayCallOptions{.address = candidate.address,
                                   .peer = candidate.peer,
                                   .authenticator = options_.authenticator,
                                   .request = options_.request,
                                   .deadline = options_.deadline,
                                   .patience = kPatience,
                                   .on_connected =
                                       [this, place](Connection connection) {
                                         const auto ended = end(place);
                                         options_.on_reached(ended->peer(), true);
                                         const auto on_connected = options_.on_connected;
                                         on_connected(std::move(connection));
                                       },
                                   .on_failure =
                                       [this, place](bool reached) {
                                         const auto ended = end(place);
                                         options_.on_reached(ended->peer(), reached);
                                         if (!left_.empty()) advance_after(0ns);
                                         else if (calls_.empty()) advance_after(pauses_.next());
                                       }});
}

/// The call, which the caller keeps alive until it returns.
std::unique_ptr<RelayCall> Detour::end(Calls::iterator call) {
  auto ended = std::move(*call);
  calls_.erase(call);
  return ended;
}

}  // namespace gossamer::net
