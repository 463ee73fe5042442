// Looks for another way to connect two peers while the direct one fails: the peer that is to accept
// the connection waits for it at the other peer's process and at processes that may relay it, and
// the peer that is to connect asks such processes one after the other.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "net/io/back_off.hpp"
#include "net/relay/relay_call.hpp"

namespace gossamer::net {

/// A process that may help.
struct RelayCandidate {
  Address address;
  int peer = 0;  ///< that it hosts
};

struct DetourOptions {
  RelayRequest request;
  Authenticator* authenticator = nullptr;  ///< null: connections are not encrypted
  gossip::Time deadline{0};                ///< of a call
  gossip::Time pause{0};                   ///< before the first
  /// Asked at the beginning of pass 0, 1, …: what to call, in this order.
  std::function<std::vector<RelayCandidate>(int pass)> candidates;
  /// Whether a connection could be used at present: no call begins otherwise.
  std::function<bool()> is_wanted;
  /// A call has ended, or a process relays: whether a process listens at the candidate's address.
  std::function<void(int peer, bool reached)> on_reached;
  /// A connection has come about. May destroy the detour.
  std::function<void(Connection)> on_connected;
};

/// Thread: the scheduler's. Its destruction ends the calls.
class Detour {
 public:
  Detour(RealScheduler& scheduler, DetourOptions options);
  ~Detour();
  Detour(const Detour&) = delete;
  Detour& operator=(const Detour&) = delete;

  std::size_t calls() const { return calls_.size(); }  ///< under way

 private:
  using Calls = std::list<std::unique_ptr<RelayCall>>;

  void advance();
  void advance_after(gossip::Time pause);
  void call(const RelayCandidate& candidate);
  std::unique_ptr<RelayCall> end(Calls::iterator call);

  RealScheduler& scheduler_;
  DetourOptions options_;
  std::vector<RelayCandidate> left_;  ///< of this pass, the next one last
  int pass_ = 0;
  Calls calls_;
  BackOff pauses_;  ///< between passes
  gossip::Scheduler::TimerId timer_;
};

}  // namespace gossamer::net
