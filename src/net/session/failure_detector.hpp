// The failure detector of a session: when a silent peer is suspected, when it is taken for failed,
// and how long to wait before another connection. Heartbeats (net/session/frame_transport.hpp) keep
// a peer that is alive from being silent.
//
// Two clocks run against the failure timeout T. The idle time is how long a read has waited without
// a byte; a peer is suspected at T/2 and failed at T. The downtime is the time without a connection
// that carries anything; it shrinks again slowly, so that a link that is down for more than a fifth
// of the time fails too.
//
// Pure: the caller supplies every time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "gossip/scheduler.hpp"
#include "net/io/back_off.hpp"

namespace gossamer::net {

class FailureDetector {
 public:
  /// `failure_timeout`: T above.
  explicit FailureDetector(gossip::Time failure_timeout) : failure_timeout_(failure_timeout) {}

  /// The state of the session at a tick.
  struct Conditions {
    bool attached = false;  ///< it has a connection
    bool resuming = false;  ///< the connection has not carried the first acknowledgement
    bool waiting = false;   ///< a byte that came would be read, and one is expected
    bool closing = false;   ///< the session is ending; its peer is not suspected any more
  };
  enum class Finding {
    alive,
    suspected,  ///< idle for T/2; reported once
    recovered,  ///< bytes have come after a suspicion; reported once
    silent,     ///< failed: idle for T
    down,       ///< failed: a downtime of T
  };
  /// `counted`: TickClock::advance.
  Finding on_tick(gossip::Time now, gossip::Time counted, const Conditions& conditions);

  /// There is a new connection.
  void on_attach(gossip::Time now);
  /// A read begins: nothing that was sent lies unread any more.
  void on_read_started() { idle_time_ = gossip::Time(0); }
  void on_bytes();
  /// A counted frame or an acknowledgement of one has come.
  void on_progress();
  /// The connection broke; `why` is the sentence to fail with should none follow. Returns the pause
  /// before the next attempt: none after a connection that carried something, else BackOff's.
  gossip::Time on_break(std::string why);
  /// A frame that could not be read came after `received` counted frames. True the first time: the
  /// network may have damaged it. A second corruption of the same frame is a protocol violation by
  /// the sender.
  bool on_damaged_frame(std::uint64_t received);

  gossip::Time failure_timeout() const { return failure_timeout_; }
  gossip::Time idle_time() const { return idle_time_; }
  gossip::Time downtime() const { return downtime_; }
  /// How often a connection of this session has broken.
  int breaks() const { return breaks_; }
  const std::string& last_break() const { return last_break_; }

 private:
  gossip::Time failure_timeout_;
  gossip::Time idle_time_{0};
  gossip::Time downtime_{0};
  gossip::Time attached_at_{0};
  bool down_ = false;  ///< since the last break nothing has got through
  bool suspected_ = false, recovered_ = false;
  BackOff back_off_;  ///< over consecutive connections that carried nothing
  int breaks_ = 0;
  std::string last_break_;
  std::optional<std::uint64_t> damaged_at_;  ///< counted frames before the last damaged one
};

}  // namespace gossamer::net
