// The failure detector without sockets and without a clock: suspicion, silence, downtime, pauses.
#include "net/session/failure_detector.hpp"
#include "net/io/tick_clock.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace gossamer;
using namespace gossamer::net;
using namespace std::chrono_literals;

namespace {

using Finding = FailureDetector::Finding;

constexpr gossip::Time kTimeout = 1600ms, kTick = 100ms;

/// A detector with a clock that the test moves.
struct Watched {
  Finding tick(FailureDetector::Conditions conditions) {
    now += kTick;
    return detector.on_tick(now, kTick, conditions);
  }
  /// The finding of the last of `ticks` ticks; all before it are `alive`.
  Finding after(int ticks, FailureDetector::Conditions conditions) {
    for (int i = 1; i < ticks; ++i) REQUIRE(tick(conditions) == Finding::alive);
    return tick(conditions);
  }

  FailureDetector detector{kTimeout};
  gossip::Time now{0};
};

constexpr FailureDetector::Conditions kWaiting{.attached = true, .waiting = true};
constexpr FailureDetector::Conditions kBusy{.attached = true};
constexpr FailureDetector::Conditions kDetached{};

}  // namespace

TEST_CASE("a peer is suspected after half of the timeout, once, and failed after all of it") {
  Watched peer;
  peer.detector.on_attach(peer.now);
  CHECK(peer.after(9, kWaiting) == Finding::suspected);
  CHECK(peer.after(8, kWaiting) == Finding::silent);
  CHECK(peer.detector.idle_time() == 17 * kTick);
}

TEST_CASE("bytes end a suspicion, and a read that begins restarts the idle time") {
  Watched peer;
  CHECK(peer.after(9, kWaiting) == Finding::suspected);
  peer.detector.on_bytes();
  peer.detector.on_read_started();
  CHECK(peer.tick(kWaiting) == Finding::recovered);
  CHECK(peer.after(8, kWaiting) == Finding::suspected);
  peer.detector.on_read_started();
  peer.detector.on_bytes();
  peer.detector.on_bytes();
  CHECK(peer.tick(kWaiting) == Finding::recovered);
  CHECK(peer.tick(kWaiting) == Finding::alive);
}

TEST_CASE("time in which this end does not read is no idle time") {
  Watched peer;
  for (int i = 0; i < 100; ++i) CHECK(peer.tick(kBusy) == Finding::alive);
  CHECK(peer.detector.idle_time() == 0ns);
}

TEST_CASE("a session that is closing suspects no peer, but still fails a silent one") {
  Watched peer;
  CHECK(peer.after(17, {.attached = true, .waiting = true, .closing = true}) == Finding::silent);
}

TEST_CASE("a new connection restarts the idle time") {
  Watched peer;
  CHECK(peer.after(9, kWaiting) == Finding::suspected);
  peer.detector.on_attach(peer.now);
  CHECK(peer.detector.idle_time() == 0ns);
}

TEST_CASE("without a connection that carries anything a peer fails after the timeout") {
  Watched peer;
  CHECK(peer.detector.on_break("it broke") == 0ns);
  CHECK(peer.detector.last_break() == "it broke");
  CHECK(peer.after(17, kDetached) == Finding::down);
  CHECK(peer.detector.downtime() == 17 * kTick);
}

TEST_CASE("a connection that does not resume the session is downtime") {
  Watched peer;
  peer.detector.on_break("it broke");
  peer.detector.on_attach(peer.now);
  CHECK(peer.after(17, {.attached = true, .resuming = true}) == Finding::down);
}

TEST_CASE("a connection that lasts for half of the timeout ends the downtime") {
  Watched peer;
  peer.detector.on_break("it broke");
  peer.detector.on_attach(peer.now);
  for (int i = 0; i < 100; ++i) CHECK(peer.tick(kBusy) == Finding::alive);
  CHECK(peer.detector.downtime() == 0ns);
}

TEST_CASE("downtime shrinks to a quarter as fast as it grows") {
  Watched peer;
  peer.detector.on_break("it broke");
  CHECK(peer.after(8, kDetached) == Finding::alive);
  peer.detector.on_attach(peer.now);
  peer.detector.on_progress();
  for (int i = 0; i < 8; ++i) CHECK(peer.tick(kBusy) == Finding::alive);
  CHECK(peer.detector.downtime() == 6 * kTick);
  peer.detector.on_break("it broke again");
  CHECK(peer.after(11, kDetached) == Finding::down);
}

TEST_CASE("pauses between connections that carry nothing double from 50 ms to 1 s") {
  FailureDetector detector(kTimeout);
  std::vector<gossip::Time> pauses;
  for (int i = 0; i < 8; ++i) pauses.push_back(detector.on_break("it broke"));
  CHECK(pauses == std::vector<gossip::Time>{0ms, 50ms, 100ms, 200ms, 400ms, 800ms, 1s, 1s});
  detector.on_progress();
  CHECK(detector.on_break("it broke") == 0ms);
  CHECK(detector.on_break("it broke") == 50ms);
  CHECK(detector.breaks() == 10);
}

TEST_CASE("a frame may be damaged once; a second corruption of the same frame is a violation") {
  FailureDetector detector(kTimeout);
  CHECK(detector.on_damaged_frame(0));
  CHECK_FALSE(detector.on_damaged_frame(0));
  CHECK(detector.on_damaged_frame(12));
  CHECK(detector.on_damaged_frame(13));
  CHECK_FALSE(detector.on_damaged_frame(13));
}

TEST_CASE("time in which this process did not run counts for two ticks at most") {
  TickClock clock(kTick);
  CHECK(clock.advance(kTick) == kTick);
  CHECK(clock.advance(kTick + 50ms) == 50ms);
  CHECK(clock.advance(1h) == 2 * kTick);
}
