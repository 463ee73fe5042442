#include "topology/lattice.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace gossamer::topology {
namespace {

/// peers numbered along the last side ↔ coordinates.
std::vector<int> coordinates(int peer, std::span<const int> sides) {
  std::vector<int> result(sides.size());
  for (std::size_t s = sides.size(); s-- > 0; peer /= sides[s]) result[s] = peer % sides[s];
  return result;
}

bool covers(std::span<const int> sides, int peers) {
  std::int64_t product = 1;
  for (const int side : sides) {
    if (side < 1) return false;
    product *= side;
    if (product > peers) return false;
  }
  return !sides.empty() && product == peers;
}

/// The same for one side, in one pass: row i from peer i on is row 0, since both are ascending;
/// rows are equally long.
bool same_around_a_ring(const MixingMatrix& w) {
  const int n = w.peers();
  const auto first = w.in_neighbours(0);
  for (int i = 0; i < n; ++i) {
    const auto row = w.in_neighbours(i);
    const auto from =
        std::lower_bound(row.begin(), row.end(), i,
                         [](const Neighbour& entry, int peer) { return entry.peer < peer; });
    auto at = static_cast<std::size_t>(from - row.begin());
    for (const Neighbour& wanted : first) {
      if (at == row.size()) at = 0;
      const int offset = row[at].peer - i + (row[at].peer < i ? n : 0);
      if (offset != wanted.peer || row[at].weight != wanted.weight) return false;
      ++at;
    }
  }
  return true;
}

/// Whether every row is row 0, moved: j − i, coordinate by coordinate, has in row i the weight that
/// it has in row 0.
bool same_from_everywhere(const MixingMatrix& w, std::span<const int> sides) {
  const auto first = w.in_neighbours(0);
  const auto weight_at = [&](int offset) {
    const auto found =
        std::lower_bound(first.begin(), first.end(), offset,
                         [](const Neighbour& entry, int peer) { return entry.peer < peer; });
    return found != first.end() && found->peer == offset ? found->weight : 0.0;
  };
  // Weights of a row are rounded alike, but for the last bits that a diagonal has from its order of
  // additions.
  const double tolerance = 8 * std::numeric_limits<double>::epsilon();
  for (int i = 0; i < w.peers(); ++i)
    if (w.in_neighbours(i).size() != first.size() ||
        std::abs(w.self_weight(i) - w.self_weight(0)) > tolerance)
      return false;
  if (sides.size() == 1) return same_around_a_ring(w);
  for (int i = 0; i < w.peers(); ++i) {
    const std::vector<int> from = coordinates(i, sides);
    for (const auto& [j, weight] : w.in_neighbours(i)) {
      int offset = 0, rest = j, stride = 1;
      for (std::size_t s = sides.size(); s-- > 0; rest /= sides[s], stride *= sides[s]) {
        const int difference = rest % sides[s] - from[s];
        offset += stride * (difference < 0 ? difference + sides[s] : difference);
      }
      if (weight_at(offset) != weight) return false;
    }
  }
  return true;
}

/// ω^m, ω = e^{2πi/n}, for m = 0..n−1; exact where it is ±1 or ±i.
std::vector<std::complex<double>> roots_of_unity(int n) {
  std::vector<std::complex<double>> roots(static_cast<std::size_t>(n));
  for (int m = 0; m < n; ++m) {
    const double angle = 2 * std::numbers::pi * m / n;
    roots[static_cast<std::size_t>(m)] = {4LL * m == n || 4LL * m == 3LL * n ? 0 : std::cos(angle),
                                          2LL * m == n ? 0 : std::sin(angle)};
  }
  return roots;
}

/// One entry of row 0: its weight, and by how much its phase turns for one more of wave coordinate
/// s, in n-th of a turn.
struct Turn {
  double weight;
  std::vector<std::pair<std::size_t, std::int64_t>> by_side;
};

std::vector<Turn> turns_of(const MixingMatrix& w, std::span<const int> sides) {
  std::vector<Turn> turns;
  for (const auto& [peer, weight] : w.in_neighbours(0)) {
    Turn turn{weight, {}};
    const std::vector<int> offset = coordinates(peer, sides);
    for (std::size_t s = 0; s < sides.size(); ++s)
      if (offset[s] != 0)
        turn.by_side.emplace_back(s, std::int64_t{offset[s]} * (w.peers() / sides[s]));
    turns.push_back(std::move(turn));
  }
  return turns;
}

}  // namespace

bool is_lattice(const MixingSchedule& schedule) {
  if (schedule.period() == 0 || !covers(schedule.lattice(), schedule.peers())) return false;
  for (int t = 0; t < schedule.period(); ++t)
    if (!same_from_everywhere(*schedule.at(static_cast<Round>(t)), schedule.lattice()))
      return false;
  return true;
}

std::optional<std::vector<std::complex<double>>> lattice_eigenvalues(const MixingMatrix& w,
                                                                     std::span<const int> sides) {
  const int n = w.peers();
  if (!covers(sides, n) || !same_from_everywhere(w, sides)) return std::nullopt;
  const std::vector<std::complex<double>> roots = roots_of_unity(n);
  const std::vector<Turn> turns = turns_of(w, sides);
  const double rounding =
      static_cast<double>(turns.size() + 1) * std::numeric_limits<double>::epsilon();
  std::vector<std::complex<double>> eigenvalues(static_cast<std::size_t>(n));
  for (int k = 0; k < n; ++k) {
    const std::vector<int> wave = coordinates(k, sides);
    std::complex<double> sum = w.self_weight(0);
    for (const Turn& turn : turns) {
      std::int64_t phase = 0;
      for (const auto& [s, step] : turn.by_side) phase += step * wave[s];
      sum += turn.weight * roots[static_cast<std::size_t>(phase % n)];
    }
    eigenvalues[static_cast<std::size_t>(k)] = std::abs(sum) <= rounding ? 0 : sum;
  }
  eigenvalues[0] = 1;
  return eigenvalues;
}

}  // namespace gossamer::topology
