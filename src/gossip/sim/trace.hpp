// What a simulated run leaves behind for the oracle: what each peer logged, its rows at both ends of each round, and what its
// trainer did in between. Nothing of it comes out of the exchange but the deviations that it logs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gossip/exchange.hpp"
#include "gossip/trainer.hpp"

namespace gossamer::gossip::sim {

using FloatRow = std::vector<float>;

/// One operation of a peer's trainer: x before and after, and the gradient that it left.
struct Trained {
  TrainOperation operation;
  FloatRow before, gradient, after;
};

/// One round of one peer.
struct RoundRecord {
  Round round = 0;
  bool restarted = false;          ///< rows with a conserved sum began again before it
  std::vector<FloatRow> begin;     ///< by row of the algorithm, once rows began again
  std::vector<Trained> trained;
  std::vector<FloatRow> end;       ///< empty: the peer's process ended in this round
  std::vector<Deviation> deviations;
};

/// A link's loss, as one end was told of it.
struct LossRecord {
  int peer = 0, other = 0;
  Round round = 0;  ///< of `peer` when it was told
  Time at{0};
};

/// What one peer did.
struct PeerRecord {
  std::vector<RoundRecord> rounds;
  std::vector<Deviation> skipped;  ///< logged for rounds that it left out
  bool alive = true;               ///< its process did not end
  bool finished = false;           ///< it did its last round
  Time finished_at{0};
  std::uint64_t most_waiting_bytes = 0;  ///< that had come and were not taken, at most at any one time
};

struct Trace {
  std::vector<PeerRecord> peers;
  std::vector<LossRecord> losses;
  std::vector<std::string> complaints;  ///< faults that a process reported, and chunks that it refused undamaged
  Time end{0};
  std::uint64_t events = 0;
  bool out_of_time = false;  ///< virtual time ran out, or events, before all was quiet
  std::uint64_t hash = 0;    ///< of chunks delivered, rounds done and final rows
};

}  // namespace gossamer::gossip::sim
