// A round-robin tournament by the circle method: in each round every player meets at most one
// other, and over all rounds each pair meets once. Pure; any thread.
#pragma once

#include <optional>

namespace gossamer::peer {

/// n − 1 rounds for an even number of players, n for an odd one, in each of which one player rests.
inline int tournament_rounds(int players) { return players < 2 ? 0 : players - 1 + players % 2; }

/// Whom `player` meets in `round`, both counted from 0; none: it rests. With m players, m even, the
/// players 0 … m−2 stand on a circle, and two of them meet in the round r ≡ i + j (mod m − 1). The
/// one that would meet itself, 2i ≡ r, meets player m − 1.
inline std::optional<int> opponent(int players, int round, int player) {
  if (players < 2) return std::nullopt;
  const int fixed = players + players % 2 - 1;  // m − 1: the length of the circle, and the last id
  const int half = (fixed + 1) / 2;             // 2 · half ≡ 1 (mod m − 1)
  const auto alone = static_cast<int>(static_cast<long long>(round) * half % fixed);
  int other = player == fixed   ? alone
              : player == alone ? fixed
                                : ((round - player) % fixed + fixed) % fixed;
  if (other >= players) return std::nullopt;
  return other;
}

}  // namespace gossamer::peer
