// What the events of a session mean for its edge and for the run: whether a link is lost or
// restored, whether to connect again, and whether the run ends.
#pragma once

#include <string>
#include <vector>

#include "net/run/all_gather_phase.hpp"
#include "net/run/connection_manager.hpp"
#include "net/run/join_phase.hpp"
#include "net/run/network_state.hpp"
#include "net/run/shutdown.hpp"

namespace gossamer::net {

/// Thread: the scheduler's.
class EdgeSupervisor final : public SessionOwner {
 public:
  /// All references outlive the supervisor.
  EdgeSupervisor(NetworkState& state, JoinPhase& join, AllGatherPhase& all_gather,
                 ConnectionManager& connections, Shutdown& shutdown)
      : state_(state),
        join_(join),
        all_gather_(all_gather),
        connections_(connections),
        shutdown_(shutdown) {}
  ~EdgeSupervisor() override;
  EdgeSupervisor(const EdgeSupervisor&) = delete;
  EdgeSupervisor& operator=(const EdgeSupervisor&) = delete;

  /// Network::end_link.
  void end_link(Edge& edge, Network::Blame blame, std::string why);

  Status on_chunk(gossip::Chunk chunk) override;
  Status on_contribution(Session& session, std::string contribution) override;
  void on_alive(Session& session) override;
  void on_goodbye(Session& session) override;
  void on_running() override;
  Status on_figures(Session& session, const FiguresFrame& figures, std::string entries) override;
  void on_failure(Session& session, Error error) override;
  void on_abort(Session& session, Error error) override;

 private:
  struct Ending {
    int local, remote;
    std::uint64_t session;  ///< Edge::sessions: the other end chooses the session's id
    std::string why;
    bool violates;  ///< the other end has violated the protocol
  };

  void part(Edge& edge);
  void await_goodbyes();
  bool on_session_end(Edge& edge, const Error& why);

  NetworkState& state_;
  JoinPhase& join_;
  AllGatherPhase& all_gather_;
  ConnectionManager& connections_;
  Shutdown& shutdown_;
  std::vector<Ending> endings_;  ///< of sessions, due at ending_timer_
  gossip::Scheduler::TimerId ending_timer_, goodbye_timer_;
};

}  // namespace gossamer::net
