// Network over TCP: the edges of this process, how each comes to be connected, and what ends the run.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/caller.hpp"
#include "net/door.hpp"
#include "net/network.hpp"
#include "net/rendezvous.hpp"

namespace gossamer::net {

class TcpNetwork final : public Network, public SessionOwner {
 public:
  TcpNetwork(RealScheduler& scheduler, NetworkSetup setup, gossip::Receiver& receiver);
  ~TcpNetwork() override;

  Status start() override;
  bool joined() const override { return joined_; }
  Status join() override;
  Status confer(Conference conference) override;
  void begin_confer(Conference conference) override;
  bool conferred() const override { return conference_ && exchanges_done_ == conference_->exchanges; }
  gossip::Link& link(int from, int to) override;
  Traffic traffic(int peer) const override;
  Address address() const override { return door_->address(); }
  void abort(Error error) override;
  void leave(gossip::Time patience) override;
  void begin_leave() override;
  bool left() const override;

 private:
  /// A pair and its connection. Of the two, the lower id calls.
  struct Edge final : gossip::Link {
    int local = 0, remote = 0;
    std::unique_ptr<Caller> caller;    ///< while calling
    std::unique_ptr<Session> session;  ///< once connected; stays when closed
    std::string called_back;           ///< why a caller was refused, or lost again
    std::deque<std::string> statements;     ///< that came and were not heard yet: two at most

    bool calls() const { return local < remote; }
    bool connected() const { return session != nullptr && !session->closed(); }
    void send(gossip::Chunk chunk) override;
  };

  // Joining (join.cpp).
  void call(Edge& edge);
  Result<Address> find(int peer) const;
  Verdict admit(int from, int to);
  void admitted(std::unique_ptr<Socket> socket, const Hello& hello);
  void refused(const Hello& hello, const std::string& clause);
  void connect(Edge& edge, std::unique_ptr<Socket> socket, const Hello& theirs, const std::string& address);
  void check_joined();
  Status outcome(bool late);
  std::vector<std::string> missing() const;
  void report_missing();
  std::string known_address(int peer) const;

  // Conferring (join.cpp).
  /// Joined, and everything is told that is to be told before the first round.
  bool has_begun() const { return joined_ && (!conference_ || conferred()); }
  void say();
  void hear();
  Status told(Session& session, std::string statement) override;

  // Running.
  Status deliver(gossip::Chunk chunk) override;
  void failed(Session& session, Error error) override;
  void aborted(Session& session, Error error) override;
  void end_run(Error error, const Session* heard_from);
  void tick();
  Edge* find_edge(int local, int remote);
  bool each_session(const std::function<bool(const Session&)>& holds) const;

  RealScheduler& scheduler_;
  NetworkSetup setup_;
  gossip::Receiver& receiver_;
  gossip::Time silence_;

  HashMemo hashes_;
  std::map<std::pair<int, int>, Edge> edges_;  ///< by (local, remote)
  std::map<int, Traffic> traffic_;
  std::optional<Rendezvous> rendezvous_;
  std::vector<std::unique_ptr<Session>> old_sessions_;  ///< lost while joining; kept, for they may be in a call
  std::unique_ptr<Door> door_;

  bool started_ = false, joined_ = false, joining_ = false, leaving_ = false;
  std::optional<Conference> conference_;
  int exchanges_done_ = 0;
  std::optional<Error> error_;  ///< what ended the run
  gossip::Time ticked_{0};
  gossip::Scheduler::TimerId tick_timer_, report_timer_, release_timer_;
};

}  // namespace gossamer::net
