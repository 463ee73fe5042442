// The options of an exchange: its policy, the sizes of its messages, and the bounds it enforces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "gossip/algorithm.hpp"
#include "gossip/attack.hpp"
#include "gossip/codec.hpp"
#include "gossip/link.hpp"
#include "gossip/policy.hpp"
#include "gossip/rule.hpp"
#include "gossip/scheduler.hpp"

namespace gossamer::gossip {

/// What the messages of a channel are.
struct ChannelSpec {
  std::size_t length = 0;       ///< values of a row
  bool mixed = false;           ///< rows of rounds, which a mix takes
  bool as_difference = false;   ///< a mix leaves what it adds to the row, not the sum
  bool row_stochastic = false;  ///< a mix divides a row of W by its sum. Only under `sync`, with
                                ///< the mean and without a codec
  bool shared = false;          ///< rows that neighbours share: Mixer::share()
  bool conserves_sum = false;   ///< where a neighbour is absent, what is left of a directed W
                                ///< conserves the sum of such rows over the peers, and for other
                                ///< rows keeps consensus a fixed point; of a symmetric W, both.
                                ///< Only under `sync`
};

struct ExchangeOptions {
  Policy policy = Policy::sync;
  Round staleness = 4;           ///< `stale`: rounds that a peer may be ahead of a neighbour
  double deadline_slack = 0.25;  ///< `deadline`: the part of a round that a mix waits for a row
                                 ///< beyond the usual time of arrival
  std::size_t chunk_values = 1 << 18;  ///< largest number of values in a chunk: 1 MiB
  std::vector<ChannelSpec> channels =
      std::vector<ChannelSpec>(1);  ///< of the rows that may be mixed or sent; two more are for
                                    ///< the rows with which a peer begins, and chunks of others
                                    ///< are refused
  std::function<int(int peer)> gpu_of = [](int) {
    return 0;
  };  ///< the GPU of the device on which a hosted peer's rows lie
  const Codec* codec = nullptr;  ///< of mixed and coded rows; null: rows are sent as they are. Only
                                 ///< under `sync`
  const MixingRule* rule = nullptr;  ///< of mixed rows; null: the mean. Not with a lossy codec
  /// Null: all messages are honest. A plan with `make` is for `sync`, an algorithm that only mixes
  /// one row, and no lossy codec; one with `silent_every` for `deadline` and `async`.
  const AttackPlan* attack = nullptr;
  std::uint64_t seed = 0;         ///< of the run: keys the random choices of algorithms
  Round rounds = Round(1) << 40;  ///< of the run: rows of later rounds are refused, and control
                                  ///< messages beyond kLargestMargin
  Time row_limit = Time(0);     ///< RowDeadline's, in a network; 0: rows are waited for without end
  float largest_value = 1e18F;  ///< bound on the magnitude of values sent between peers; finite

  /// StartingRows' channels: of rows that a joining peer asks for, and of rows that a peer is given
  /// with a change of participants.
  Channel requested_channel() const { return static_cast<Channel>(channels.size()); }
  Channel given_channel() const { return static_cast<Channel>(channels.size() + 1); }
  std::size_t channel_count() const { return channels.size() + 2; }
};

/// Whether mixed rows travel as messages of a codec that does not keep every bit.
inline bool is_lossy(const ExchangeOptions& options) {
  return options.codec != nullptr && options.codec->fidelity() != Fidelity::exact;
}

/// A channel for each row of an algorithm, and one for gradients. `length`: d, the number of
/// parameters.
std::vector<ChannelSpec> channels_of(const std::vector<RowSpec>& rows, std::size_t length);

}  // namespace gossamer::gossip
