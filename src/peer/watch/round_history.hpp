// The logged rounds of a run that a view keeps: all of them in a short run, in a longer one every
// second, fourth … of them and the newest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "peer/log/metrics.hpp"
#include "peer/watch/figures.hpp"

namespace gossamer::peer {

/// Thread: one at a time.
class RoundHistory {
 public:
  /// Rounds that are kept at most, where there are few peers.
  static constexpr std::size_t kMostRounds = 1024;
  /// Rounds times peers that are kept at most, of 16 bytes each; it bounds the rounds where there
  /// are many peers.
  static constexpr std::size_t kMostPeerFigures = std::size_t{1} << 22;
  /// The bound for a network of any size.
  static constexpr std::size_t kFewestRounds = 32;
  /// Values of sketches that are kept until their round has those of all peers: 64 MiB. Beyond it,
  /// the sketches of the oldest round are dropped.
  static constexpr std::size_t kMostSketchValues = std::size_t{1} << 24;

  struct Round {
    RoundFigures figures;
    PeerFigures peers;
    /// Bytes that nodes have sent since the kept round before, as far as they have recorded them.
    std::uint64_t sent = 0;
    std::map<int, std::vector<float>> sketches;  ///< by honest peer, until all are there
    std::size_t due = 0;                         ///< how many that are, once there is one
  };

  RoundHistory() = default;
  /// Of `peers` peers whose logs have every `every`-th round.
  RoundHistory(int peers, std::uint64_t every)
      : peers_(static_cast<std::size_t>(peers)), every_(every) {}

  /// The round, which is kept from now on if it is a newer one; null if it is not kept.
  Round* at(std::uint64_t round);
  const std::map<std::uint64_t, Round>& kept() const { return rounds_; }
  /// How often the set of kept rounds has changed.
  std::uint64_t changes() const { return changes_; }

  /// A node has sent `bytes` between its record before and that of `round`, which need not be kept.
  /// `version`: of the view; the bytes count in each kept round from `round` on.
  void add_sent(std::uint64_t round, std::uint64_t bytes, std::uint64_t version);

  /// Keeps a peer's sketch with its round, where it has no other length than those before.
  void add_sketch(Round& round, int peer, const std::vector<double>& sketch);
  /// The consensus distance of the peers whose sketches the round has, which are dropped. In
  /// `by_peer` each of the `honest` peers has a place, and NaN if it has no sketch.
  ConsensusDistance take_estimate(Round& round, const std::vector<int>& honest);

 private:
  bool fits(std::uint64_t round) const {
    return round % every_ == 0 && round / every_ % stride_ == 0;
  }
  void erase(std::map<std::uint64_t, Round>::iterator round);
  void thin_out();
  std::vector<std::vector<double>> take_sketches(Round& round);

  std::size_t peers_ = 1;
  std::uint64_t every_ = 1, stride_ = 1;
  std::map<std::uint64_t, Round> rounds_;
  std::map<std::uint64_t, std::uint64_t> sent_ahead_;  ///< by round, beyond the newest kept one
  std::uint64_t changes_ = 0;
  std::size_t sketch_values_ = 0;
};

}  // namespace gossamer::peer
