// The exchange: how rows travel between the peers of this process and the others. In a round, a
// peer sends its row to the out-neighbours in chunks, and mixes the rows of the in-neighbours into
// its own. The Exchange is the process's hub; an Endpoint is one peer's side, made of a Messenger
// (gossip/messaging/), a PeerView (gossip/peer_view.hpp), and a Mixer (gossip/mixing/).
#pragma once

#include <memory>
#include <set>
#include <vector>

#include "gossip/exchange/endpoint.hpp"
#include "gossip/link.hpp"
#include "gossip/mixing/adversary.hpp"
#include "gossip/process/options.hpp"
#include "gossip/process/process_context.hpp"

namespace gossamer::gossip {

/// The endpoints of one process, and the services that they share. Thread: the scheduler's.
class Exchange final : public Receiver {
 public:
  using OnFault = FaultReporter::OnFault;

  /// `on_fault` is called once, with the first fault after which the run cannot continue; the
  /// operations concerned never complete. All references outlive the exchange.
  Exchange(Scheduler& scheduler, Compute& compute, const topology::MixingSchedule& schedule,
           ExchangeOptions options, const std::vector<int>& hosted, OnFault on_fault);
  ~Exchange() override;

  /// LinkRegistry::connect().
  void connect(int from, int to, Link& link) { links_.connect(from, to, link); }
  /// LinkRegistry::connect_hosted().
  void connect_hosted(std::function<Link&(int from, int to)> make) {
    links_.connect_hosted(std::move(make));
  }
  /// The endpoint of hosted peer `peer`.
  Endpoint& endpoint(int peer);
  /// A chunk has arrived for a hosted peer. Validates the values of another process's chunk, unless
  /// they are in device memory, where staging has validated them.
  Status deliver(Chunk chunk) override;

  /// Endpoint::on_tick() of every endpoint.
  void on_tick(Time counted);

  Scheduler& scheduler() { return process_.scheduler; }
  Compute& compute() { return process_.compute; }
  const topology::MixingSchedule& schedule() const { return process_.schedule; }
  const ExchangeOptions& options() const { return options_; }
  FaultReporter& faults() { return faults_; }
  Validator& validator() { return validator_; }

 private:
  /// Null if `peer`, any number, is not hosted here.
  Endpoint* find(int peer) const;

  ExchangeOptions options_;
  std::set<int> hosted_;
  LinkRegistry links_;
  FaultReporter faults_;
  Validator validator_;
  ZeroRows zeros_;
  ProcessContext process_;
  std::unique_ptr<Adversary> adversary_;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;  ///< by peer; null: it is not hosted here
};

}  // namespace gossamer::gossip
