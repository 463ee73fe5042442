// Whether the peer at the other end of an edge may begin another session: not for a while after it
// has violated the protocol. Also notices when another process claims to be that peer.
#pragma once

#include <optional>

#include "gossip/scheduler.hpp"

namespace gossamer::net {

/// Pure: the caller supplies every time.
class Admission {
 public:
  /// How a session ended.
  struct Failure {
    bool violated = false;  ///< the peer violated the protocol
    bool silent = false;    ///< it was to restore a lost link, and nothing came over it
  };

  bool is_barred(gossip::Time now) const { return now < barred_until_; }
  /// Rows of the peer are overdue, and its session is about to fail for that: it is barred for
  /// `row_timeout`, and each time for twice as long as the time before.
  void on_overdue(gossip::Time row_timeout);
  /// The session has failed. Returns the pause before this process connects again.
  gossip::Time on_failure(gossip::Time now, const Failure& failure);

  /// Another process claims the id of the peer, which is connected. True once, when that has gone
  /// on for `failure_timeout`: the connected one may have died and not be detected yet.
  bool on_duplicate(gossip::Time now, gossip::Time failure_timeout);
  /// A session begins.
  void on_session() {
    duplicate_since_.reset();
    duplicate_reported_ = false;
  }

 private:
  gossip::Time barred_until_{0};
  gossip::Time bar_{0};    ///< after the failure that is to come
  int times_overdue_ = 0;  ///< sessions that failed because rows were overdue
  std::optional<gossip::Time> duplicate_since_;
  bool duplicate_reported_ = false;
};

}  // namespace gossamer::net
