// Network over TCP: the edges of this process, how each comes to be connected, and what ends the
// run.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "net/network.hpp"
#include "net/startup/acceptor.hpp"
#include "net/startup/connector.hpp"
#include "net/startup/rendezvous.hpp"

namespace gossamer::net {

class TcpNetwork final : public Network, public SessionOwner {
 public:
  TcpNetwork(RealScheduler& scheduler, NetworkSetup setup, gossip::Receiver& receiver);
  ~TcpNetwork() override;

  Status start() override;
  bool joined() const override { return joined_; }
  Status join() override;
  bool late() const override { return late_; }
  bool connected(int here, int there) const override;
  Status all_gather(AllGather conference) override;
  void begin_all_gather(AllGather conference) override;
  bool all_gathered() const override {
    return late_ || (conference_ && exchanges_done_ == conference_->exchanges);
  }
  void proceed() override;
  gossip::Link& link(int from, int to) override;
  void refuse(int here, int there, const Error& why) override;
  Traffic traffic(int peer) const override;
  Address address() const override { return acceptor_->address(); }
  void abort(Error error) override;
  void leave(gossip::Time patience) override;
  void begin_leave() override;
  bool left() const override;

 private:
  /// A pair and its connection. Of the two, the lower id calls.
  struct Edge final : gossip::Link {
    int local = 0, remote = 0;
    std::unique_ptr<Connector>
        caller;  ///< while calling, for a first connection or for another one of the session's
    std::unique_ptr<Session>
        session;               ///< once connected; stays when closed, until there is another
    std::uint64_t called = 0;  ///< the session that was called for last
    std::string called_back;   ///< why a caller was refused, or lost again
    std::deque<std::string> statements;  ///< that came and were not heard yet: two at most

    /// It carries nothing, and those above know that, or will ask. True while the network runs and
    /// there is no session, or one from which nothing was heard yet: a connection that was made
    /// while its caller gave up is none.
    bool lost = false;
    /// Of a session made after joining: the channels on which it has carried the beginning of a
    /// message.
    std::optional<std::set<gossip::Channel>> begun;
    gossip::Time barred_until{0};              ///< not admitted before: it sent what it must not
    std::optional<gossip::Time> called_again;  ///< when it did first, although connected
    bool said_twice = false;                   ///< that it must have been started twice
    std::string refusal;  ///< what it said last when it was called again and refused us

    bool calls() const { return local < remote; }
    /// There is a session, though perhaps without a connection at the moment.
    bool connected() const { return session != nullptr && !session->closed(); }
    bool attached() const { return connected() && session->attached(); }
    bool knows(std::uint64_t id) const { return id != 0 && connected() && session->id() == id; }
    void send(gossip::Chunk chunk) override;
  };

  // Joining (join.cpp).
  void call(Edge& edge, gossip::Time pause = gossip::Time(0));
  Result<Address> find(int peer) const;
  void call_again(Edge& edge, gossip::Time pause);
  Connector::Plan plan_call(const Edge& edge, gossip::Time pause);
  HandshakeResult admit(const Hello& hello) const;
  void admitted(std::unique_ptr<Socket> socket, const Hello& hello, HandshakeResult verdict);
  void refused(const Hello& hello, HandshakeResult verdict, const std::string& clause);
  void connect(Edge& edge, std::unique_ptr<Socket> socket, const Hello& theirs,
               const std::string& address);
  void attach(Edge& edge, std::unique_ptr<Socket> socket, bool resumes);
  void check_joined();
  void release_data();
  void network_runs() override;
  Status outcome(bool late);
  std::vector<std::string> missing() const;
  void report_missing();
  std::string known_address(int peer) const;

  // Conferring (join.cpp).
  /// Joined, and everything is told that is to be told before the first round: those above hear of
  /// losses and returns. What happens to a latecomer's links before join() or confer() return, they
  /// learn by connected().
  bool has_begun() const { return joined_ && (late_ || !conference_ ? !joining_ : all_gathered()); }
  /// What our hellos say.
  bool running() const { return late_ || has_begun(); }
  void say();
  void hear();
  Status told(Session& session, std::string statement) override;

  // Running.
  Status deliver(gossip::Chunk chunk) override;
  void failed(Session& session, Error error) override;
  void aborted(Session& session, Error error) override;
  void greeted(Session& session) override;
  void left(Session& session) override;
  bool lose(Edge& edge, const Error& why);
  void end_run(Error error, const Session* heard_from);
  void tick();
  Edge* find_edge(int local, int remote);
  const Edge* find_edge(int local, int remote) const;
  bool each_session(const std::function<bool(const Session&)>& holds) const;

  RealScheduler& scheduler_;
  NetworkSetup setup_;
  gossip::Receiver& receiver_;
  gossip::Time failure_timeout_;

  HashMemo hashes_;
  std::map<std::pair<int, int>, Edge> edges_;  ///< by (local, remote)
  std::map<int, Traffic> traffic_;
  std::optional<Rendezvous> rendezvous_;
  std::unique_ptr<Acceptor> acceptor_;

  bool started_ = false, joined_ = false, leaving_ = false;
  bool joining_ = false;   ///< within join() or confer()
  bool released_ = false;  ///< chunks are delivered
  bool held_ = false;      ///< they are not, from begin_all_gather() to proceed()
  bool late_ = false, grace_over_ = false;
  std::optional<AllGather> conference_;
  int exchanges_done_ = 0;
  std::optional<Error> error_;  ///< what ended the run
  struct Refusal {
    int here, there;
    std::uint64_t session;
    std::string why;
  };
  std::vector<Refusal> refusals_;  ///< to be done at refuse_timer_
  gossip::Time ticked_{0}, kept_{0};
  gossip::Scheduler::TimerId tick_timer_, report_timer_, release_timer_, grace_timer_,
      refuse_timer_;
};

}  // namespace gossamer::net
