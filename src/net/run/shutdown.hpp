// How the run of a process ends: with an error that floods the graph, or by leaving in order, and
// what it does for others after that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

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
  /// Network::relay_on.
  void relay_on(gossip::Time patience, const std::function<void(std::size_t pairs)>& on_start);

 private:
  /// Of a partner that a process waits for as it leaves.
  struct Acknowledged {
    std::uint64_t frames = 0;
    std::optional<gossip::Time> since = {};
  };
  bool takes_all(Session& session, Acknowledged& acks);

  NetworkState& state_;
  bool relays_ = true;
};

}  // namespace gossamer::net
