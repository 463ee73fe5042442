// Network over TCP. This class is the facade; the parts are JoinPhase and AllGatherPhase
// (start-up), ConnectionManager (connections), EdgeSupervisor (events of sessions) and Shutdown
// (the end).
#pragma once

#include "net/io/tick_clock.hpp"
#include "net/network.hpp"
#include "net/run/all_gather_phase.hpp"
#include "net/run/connection_manager.hpp"
#include "net/run/edge_supervisor.hpp"
#include "net/run/join_phase.hpp"
#include "net/run/network_state.hpp"
#include "net/run/shutdown.hpp"

namespace gossamer::net {

class TcpNetwork final : public Network {
 public:
  TcpNetwork(RealScheduler& scheduler, NetworkSetup setup, gossip::Receiver& receiver);
  ~TcpNetwork() override;

  Status start() override;
  bool joined() const override { return state_.run.joined; }
  Status join() override;
  bool late() const override { return state_.run.late; }
  bool connected(int here, int there) const override;
  Status all_gather(AllGather gather) override;
  void begin_all_gather(AllGather gather) override;
  bool all_gathered() const override { return all_gather_.complete(); }
  void release_chunks() override { join_.release_chunks(); }
  gossip::Link& link(int from, int to) override { return state_.edges.at(from, to); }
  void send_figures(int here, int there,
                    const std::function<std::optional<Figures>()>& figures) override;
  void end_link(int here, int there, Blame blame, const Error& why) override;
  SocketTraffic traffic(int peer) const override { return state_.traffic.at(peer); }
  std::vector<LinkReport> links() const override;
  void set_members(MemberList members) override { connections_.set_members(std::move(members)); }
  RefusedConnections refused() const override { return connections_.refused(); }
  Address address() const override { return connections_.address(); }
  void abort(Error error) override { shutdown_.abort(std::move(error)); }
  void leave(gossip::Time patience) override { shutdown_.leave(patience); }
  void relay_on(gossip::Time patience,
                const std::function<void(std::size_t pairs)>& on_start) override {
    shutdown_.relay_on(patience, on_start);
  }
  void begin_leave() override { shutdown_.begin_leave(); }
  bool left() const override { return shutdown_.left(); }

 private:
  void tick();

  NetworkState state_;
  Shutdown shutdown_;
  AllGatherPhase all_gather_;
  JoinPhase join_;
  ConnectionManager connections_;
  EdgeSupervisor supervisor_;
  bool started_ = false;
  TickClock clock_;
  gossip::Scheduler::TimerId tick_timer_;
};

}  // namespace gossamer::net
