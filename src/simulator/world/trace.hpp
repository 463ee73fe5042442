// What a simulated run leaves behind for the oracle: what each peer logged, its rows at both ends
// of each round, what its trainer did in between, and what its process found on its disk. Nothing
// of it comes out of the exchange but the deviations that it logs.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gossip/exchange/exchange.hpp"
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
  Time began{0};
  bool restarted = false;       ///< rows with a conserved sum began again before it
  std::vector<int> reachable;   ///< peers that the peer held for within reach, ascending
  std::vector<FloatRow> begin;  ///< by row of the algorithm, once rows began again
  std::vector<Trained> trained;
  std::vector<FloatRow> end;  ///< empty: the peer's process ended in this round
  std::vector<Deviation> deviations;
};

/// A link that was lost, or is there again, as one end was told of it.
struct LinkRecord {
  bool back = false;
  int life = 0, other = 0;  ///< of Trace::lives
  int opening = 0;          ///< which connection of the two: both ends count alike
  Round round = 0;          ///< of `life` when it was told
  Time at{0};
};

/// What one peer did in one process. It has several where its process was started again.
struct Life {
  int peer = 0;
  bool joins = false;  ///< into a network that runs
  std::vector<RoundRecord> rounds;
  std::vector<Deviation> skipped;  ///< logged for rounds that it left out
  bool alive = true;               ///< its process did not end before its last round
  bool finished = false;           ///< it did its last round
  Time finished_at{0};
  std::uint64_t most_waiting_bytes =
      0;  ///< that had come and were not taken, at most at any one time
};

/// A peer's state after so many rounds, as its process keeps it.
struct SavedState {
  Round round = 0;
  int peer = 0;
  std::uint64_t steps = 0;  ///< local ones
  std::vector<std::uint64_t> counters;
  std::vector<FloatRow>
      rows;  ///< by row of the algorithm; those that do not survive a round may be empty
};

/// A look at what a process has kept.
struct DiskRecord {
  int process = 0;
  Round said = 0;  ///< the newest round whose states had been said to be kept; 0: none
  std::vector<SavedState> found;
};

struct Trace {
  std::deque<Life> lives;  ///< the first n are those that the peers begin with, in their order
  std::vector<LinkRecord> links;  ///< in the order of time
  std::vector<DiskRecord>
      disks;  ///< of those who keep states: when one began again, and in the end
  /// By sender and receiver, of different processes: values of rows that waited at the sender, at
  /// most at any one time.
  std::map<std::pair<int, int>, std::uint64_t> most_lent;
  std::vector<std::string>
      story;  ///< what happened to links and what peers said of it, a line each
  std::vector<std::string>
      complaints;  ///< faults that a process reported, and chunks that it refused undamaged
  Time end{0};
  std::uint64_t events = 0;
  bool out_of_time = false;  ///< virtual time ran out, or events, before all was quiet
  std::uint64_t hash = 0;    ///< of chunks delivered, rounds done and final rows
};

}  // namespace gossamer::gossip::sim
