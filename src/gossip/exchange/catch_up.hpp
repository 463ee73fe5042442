// Catch-ups: rounds that the connected peers of a part of the network leave out together, because
// another part, to which a link was restored, is many rounds ahead. docs/MEMBERSHIP.md specifies
// how peers agree on them.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "gossip/link.hpp"

namespace gossamer::gossip {

/// The rounds from … resumes_at − 1, which a part of the network leaves out.
struct CatchUp {
  Round from = 0, resumes_at = 0;
  bool operator==(const CatchUp&) const = default;
};

/// The catch-ups that one peer knows: the ones to come, and the last one before. They do not
/// overlap, and all peers that exchange rows know the same. Thread: the scheduler's.
class CatchUpPlan {
 public:
  enum class Outcome {
    adopted,  ///< it is news, and will be followed
    known,    ///< it is known, or begins in a round that is left out anyway
    late,     ///< its first round has begun
  };
  /// Adds a catch-up, of a peer in `round`. One that begins earlier replaces those that begin
  /// within it, and of two that begin in the same round the longer one counts. resumes_at > from.
  Outcome add(const CatchUp& news, Round round);
  /// The first round from t on that is not left out.
  Round next(Round t) const;
  /// The round in which the last catch-up to come that begins in round t or before resumes, of a
  /// peer in `round`; 0 if there is none.
  Round resumes_by(Round t, Round round) const;
  /// The catch-ups to come, of a peer in `round`, ascending; valid until the next change.
  std::span<const CatchUp> to_come(Round round) const;
  /// The catch-up that resumes in round t, if there is one.
  std::optional<CatchUp> resuming_in(Round t) const;
  /// Forgets the catch-ups to come: no other peer exchanges rows with this one.
  void forget_to_come(Round round);

 private:
  std::vector<CatchUp> catch_ups_;  ///< ascending
};

}  // namespace gossamer::gossip
