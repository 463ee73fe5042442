// Ends the run of a process that joins a network in which no peer can give it rows.
#pragma once

#include <functional>
#include <optional>

#include "base/result.hpp"
#include "gossip/engine/peer_engine.hpp"
#include "gossip/scheduler.hpp"

namespace gossamer::peer {

/// Watches one peer until it has rows: one that joins, or waits to take part. Thread: the
/// scheduler's.
class JoinWatch {
 public:
  using OnFault = std::function<void(Error)>;

  /// Reports an error (join_timeout) to `on_fault`, once: where no partner is connected for
  /// `failure_timeout_seconds`, or where for `join_timeout_seconds` all connected partners wait for
  /// rows themselves. The scheduler and the engine outlive the watch, and the watch outlives the
  /// scheduler's run.
  JoinWatch(gossip::Scheduler& scheduler, gossip::PeerEngine& engine,
            double failure_timeout_seconds, double join_timeout_seconds, OnFault on_fault);

  /// Begins to watch.
  void start() { look(); }

 private:
  void look();
  gossip::Time waited(bool waits, std::optional<gossip::Time>& since) const;

  gossip::Scheduler& scheduler_;
  gossip::PeerEngine& engine_;
  gossip::Time failure_timeout_;
  double join_timeout_seconds_;
  OnFault on_fault_;
  std::optional<gossip::Time> alone_since_;     ///< no partner is connected
  std::optional<gossip::Time> helpless_since_;  ///< no partner has been asked for rows
};

}  // namespace gossamer::peer
