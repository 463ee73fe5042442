// How the run of a process ends: with an error that floods the graph, or by leaving in order.
#pragma once

#include "net/run/network_state.hpp"

namespace gossamer::net {

/// Thread: the scheduler's.
class Shutdown {
 public:
  explicit Shutdown(NetworkState& state) : state_(state) {}

  /// Ends the run with its first error. The error goes to every partner except `source`, from which
  /// it came (null if it arose here); each partner forwards it likewise, so that it floods the
  /// graph.
  void end_run(Error error, const Session* source = nullptr);
  /// Network::abort.
  void abort(Error error);
  /// Network::begin_leave, left and leave.
  void begin_leave();
  bool left() const;
  void leave(gossip::Time patience);

 private:
  NetworkState& state_;
};

}  // namespace gossamer::net
