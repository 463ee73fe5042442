#include "peer/config/hostile_peers.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/philox.hpp"

namespace gossamer::peer {

Result<std::vector<int>> hostile_peers_of(double fraction, int peers, std::uint64_t seed,
                                          std::vector<int> named) {
  const auto count = std::max(1L, std::lround(fraction * peers));
  if (count >= peers)
    return invalid_error(fmt::format(
        "attack.fraction: {} of {} peers makes all of them hostile; set a smaller fraction, or "
        "run.peers to more",
        fraction, peers));
  std::vector<std::uint32_t> drawn(static_cast<std::size_t>(peers));
  std::iota(drawn.begin(), drawn.end(), 0U);
  // A step that no attack's own numbers have: theirs are of rounds, which are fewer.
  RandomStream(seed, kNoPeer, Purpose::attack, ~std::uint64_t{0}).shuffle(drawn);
  std::vector<int> hostile(drawn.begin(), drawn.begin() + count);
  std::ranges::sort(hostile);
  std::ranges::sort(named);
  if (named.empty() || named == hostile) return hostile;
  return invalid_error(
      fmt::format("attack.peers: names peers {}, and attack.fraction = {} with run.seed = {} "
                  "chooses {}; remove "
                  "one of the keys",
                  fmt::join(named, ", "), fraction, seed, fmt::join(hostile, ", ")));
}

}  // namespace gossamer::peer
