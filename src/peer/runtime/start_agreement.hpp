// All that the processes of a network agree on before the first round, in one all-gather: the round
// at which they start, the shards where each peer has its own data, and the secrets of neighbours
// whose private gradients share noise.
#pragma once

#include <optional>
#include <vector>

#include "net/network.hpp"
#include "peer/runtime/shard_agreement.hpp"
#include "peer/runtime/start_round_agreement.hpp"

namespace gossamer::peer {

class StartAgreement {
 public:
  /// `hosted`: the nodes of this process; `rounds`: at which it can start. Error (invalid): as of
  /// ShardAgreement::make(), or the shards would take too many messages.
  static Result<StartAgreement> make(const Setup& setup, const std::vector<int>& hosted,
                                     const std::vector<gossip::Round>& rounds);

  /// The rounds, then each page of the shards, and then, in a single step because only neighbours
  /// need them, the keys of pair noise. All processes have the same
  /// number of steps, because the handshake has compared their configurations. This object outlives
  /// the all-gather and stays where it is.
  net::AllGather all_gather();
  /// After the all-gather. Errors as of StartRoundAgreement::outcome().
  Result<StartRoundAgreement::Outcome> round() const;
  /// After the all-gather: the shards of all peers; empty if the peers have no data of their own.
  /// Error as of ShardAgreement::outcome().
  Result<Shards> shards() const;

 private:
  StartAgreement(const Setup& setup, StartRoundAgreement rounds, int steps)
      : setup_(&setup), rounds_(std::move(rounds)), steps_(steps) {}

  const Setup* setup_;
  StartRoundAgreement rounds_;
  std::optional<ShardAgreement> shards_;
  int steps_;     // in which one page, or the rounds, spread to all processes
  int sent_ = 0;  // contributions; one is merged before the next one is sent
};

}  // namespace gossamer::peer
