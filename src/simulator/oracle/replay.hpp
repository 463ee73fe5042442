// Recomputes mixes in double from the logged W.
#pragma once

#include <optional>

#include "simulator/oracle/trace_index.hpp"

namespace gossamer::simulator {

/// Whether a peer gave a part of its row or weight to a neighbour, or kept it.
enum class Share { given, kept, either };

/// Which of a peer's sums of W stays 1 where links are lost: that of its row, or that of its
/// column, and with the latter the sum over the peers.
enum class KeptSum { row, column, either };

class Replay {
 public:
  explicit Replay(const TraceIndex& index) : index_(index) {}

  /// Whether what `a` gives to peer j in round t went to it. In the round of a loss either may be
  /// the case; and before a restored link counts too: `a` began that round because it had proposed
  /// it, and j could not.
  Share share_of(int a, int j, Round t) const;
  /// Either, from the first change of a link of its own on: that depends on the peer's view of
  /// links elsewhere.
  KeptSum kept_sum(int a, Round t, Channel channel) const;
  /// The number of neighbours to which share_of() says `either`.
  unsigned open_shares(int a, Round t) const;

  /// W's formula on the rows that `a` used, value by value; of a row_stochastic channel with W's
  /// row over its sum. `columns`: the sum of a column is kept;
  /// bit b of `kept_shares` then says whether the b-th open share was kept. None where a used row
  /// is not on record.
  std::optional<Row> mix(int a, Round t, const ReferenceMix& own, bool columns,
                         unsigned kept_shares);
  /// The largest value that went into the last mix(), by value of the row.
  const Row& scale() const { return scale_; }
  /// What float32 may round off at value k of the last mix().
  double bound(int a, Round t, const ReferenceMix& own, std::size_t k) const;

 private:
  const TraceIndex& index_;
  Row scale_;
};

}  // namespace gossamer::simulator
