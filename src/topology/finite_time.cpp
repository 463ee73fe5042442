#include "topology/finite_time.hpp"

#include <algorithm>
#include <numeric>

#include "base/check.hpp"

namespace gossamer::topology {
namespace {

/// All peers of the group are neighbours, and end the round with the group's average.
void average(std::span<const int> group, std::vector<WeightedEdge>& round) {
  for (std::size_t i = 0; i < group.size(); ++i)
    for (std::size_t j = i + 1; j < group.size(); ++j)
      round.push_back({group[i], group[j], 1.0 / static_cast<double>(group.size())});
}

/// Round m of a sequence that goes on and on; nothing where it has no rounds.
void append_round(const Rounds& rounds, std::size_t m, std::vector<WeightedEdge>& round) {
  if (rounds.empty()) return;
  const auto& edges = rounds[m % rounds.size()];
  round.insert(round.end(), edges.begin(), edges.end());
}

/// Factors of n, each `most` or less and none above the one before, descending, exactly `count` of
/// them.
bool factorise(int n, int most, int count, std::vector<int>& factors) {
  if (count == 0) return n == 1;
  for (int factor = std::min(n, most); factor > 1; --factor) {
    if (n % factor != 0) continue;
    factors.push_back(factor);
    if (factorise(n / factor, factor, count - 1, factors)) return true;
    factors.pop_back();
  }
  return false;
}

/// One digit of n in base k + 1, and the peers that it stands for.
struct Digit {
  std::span<const int> all;                 ///< V_l: a (k+1)^p peers
  std::vector<std::span<const int>> parts;  ///< V_{l,1..a}: (k+1)^p each
  Rounds within;                            ///< hyper-hypercube of V_l
  Rounds within_each;  ///< of every V_{l,a}, side by side; of V_l where these are single peers
};

/// V cut into V_1, V_2, …, by n = Σ_l a_l (k+1)^{p_l}, p_1 > p_2 > … and 1 ≤ a_l ≤ k.
std::vector<Digit> digits_of(std::span<const int> peers, int k) {
  std::vector<Digit> digits;
  std::size_t power = 1;
  const auto base = static_cast<std::size_t>(k) + 1;
  while (power * base <= peers.size()) power *= base;
  for (std::size_t begin = 0; begin < peers.size(); power /= base) {
    const std::size_t a = (peers.size() - begin) / power;
    if (a == 0) continue;
    Digit digit;
    digit.all = peers.subspan(begin, a * power);
    digit.within = hyper_hypercube(digit.all, k);
    for (std::size_t part = 0; part < a; ++part) {
      digit.parts.push_back(digit.all.subspan(part * power, power));
      const Rounds rounds = hyper_hypercube(digit.parts.back(), k);
      digit.within_each.resize(rounds.size());
      for (std::size_t m = 0; m < rounds.size(); ++m) append_round(rounds, m, digit.within_each[m]);
    }
    if (power == 1) digit.within_each = digit.within;
    begin += digit.all.size();
    digits.push_back(std::move(digit));
  }
  return digits;
}

/// V_l exchanges rows with `rest` = V_{l+1} ∪ …. With N = |V_l| + |rest|, every v of
/// the rest is joined to one peer of each of the parts V_{l,1..a}, no two of them the same one, and
/// both ends give w = |V_{l,1}| / N = |V_l| / (a N). If V_l has the average y everywhere, and the
/// rest's mean is z, then after the round
///   every V_{l,a}'s mean is y + |rest| w (z − y) / |V_{l,1}| = (|V_l| y + |rest| z) / N,
///   and so is the rest's, whose peers each have (1 − a w) x + a w y.
/// There is a peer for every v, since |rest| < |V_{l,1}|: as the authors' program has it, V_L takes
/// the last peers of each part, V_{L−1} those before them, and so on. The others of V_l are
/// averaged among themselves, k + 1 at a time: they are equal here, but not where peers train
/// meanwhile.
void exchange(std::span<const Digit> digits, int k, std::vector<WeightedEdge>& round) {
  const Digit& digit = digits.front();
  std::vector<int> rest;
  for (const Digit& lower : digits.subspan(1))
    rest.insert(rest.begin(), lower.all.begin(), lower.all.end());
  const std::size_t part = digit.parts.front().size();
  const double weight =
      static_cast<double>(part) / static_cast<double>(digit.all.size() + rest.size());
  GOSSAMER_CHECK(rest.size() <= part,
                 "lower digits are together less than one of a higher digit's parts");
  std::vector<int> others;
  for (const std::span<const int> peers : digit.parts) {
    for (std::size_t v = 0; v < rest.size(); ++v)
      round.push_back({peers[part - 1 - v], rest[v], weight});
    const auto unpaired = peers.first(part - rest.size());
    others.insert(others.end(), unpaired.begin(), unpaired.end());
  }
  const auto most = static_cast<std::size_t>(k) + 1;
  for (std::size_t i = 0; i < others.size(); i += most)
    average(std::span<const int>(others).subspan(i, std::min(most, others.size() - i)), round);
}

}  // namespace

std::vector<int> smooth_factors(int n, int k) {
  int rest = n;
  for (int factor = 2; factor <= k + 1 && rest > 1; ++factor)
    while (rest % factor == 0) rest /= factor;
  if (rest > 1) return {};
  std::vector<int> factors;
  for (int count = 0; !factorise(n, k + 1, count, factors); ++count) factors.clear();
  std::reverse(factors.begin(), factors.end());
  return factors;
}

Rounds hyper_hypercube(std::span<const int> peers, int k) {
  const std::vector<int> sides = smooth_factors(static_cast<int>(peers.size()), k);
  GOSSAMER_CHECK(peers.size() <= 1 || !sides.empty(),
                 "a hyper-hypercube's peers are a product of factors up to k + 1");
  Rounds rounds;
  std::size_t stride = 1;
  for (const int side : sides) {
    std::vector<WeightedEdge> round;
    for (std::size_t i = 0; i < peers.size(); ++i) {
      if (i / stride % static_cast<std::size_t>(side) != 0) continue;  // not the first of its line
      std::vector<int> line;
      for (int step = 0; step < side; ++step)
        line.push_back(peers[i + static_cast<std::size_t>(step) * stride]);
      average(line, round);
    }
    rounds.push_back(std::move(round));
    stride *= static_cast<std::size_t>(side);
  }
  return rounds;
}

// First every V_l averages itself, for as many rounds m as V_1 takes, the longest. Then, one round
// each, V_1 exchanges with V_2 ∪ V_3 ∪ …, V_2 with V_3 ∪ …, and so on: after V_l's exchange its
// parts each have the mean of all, and average themselves; V_1 takes longest, p_1 rounds, in which
// the others' p_l + l − 1 fit. The last V_L has it after the exchanges. So m + 1 + p_1 rounds. A
// group that is done goes on averaging, which has an effect only where peers train meanwhile.
Rounds simple_base_graph(std::span<const int> peers, int k) {
  if (!smooth_factors(static_cast<int>(peers.size()), k).empty() || peers.size() <= 1)
    return hyper_hypercube(peers, k);
  const std::vector<Digit> digits = digits_of(peers, k);
  if (digits.size() == 1) return digits.front().within;
  const std::size_t first = digits.front().within.size(), then = digits.front().within_each.size();
  Rounds rounds(first + 1 + then);
  for (std::size_t m = 0; m < rounds.size(); ++m) {
    for (std::size_t l = 0; l < digits.size(); ++l) {
      const Digit& digit = digits[l];
      const bool last = l + 1 == digits.size();
      if (m < first) append_round(digit.within, m, rounds[m]);
      else if (m == first + l && !last) exchange(std::span(digits).subspan(l), k, rounds[m]);
      else if (m > first + l || (last && m >= first + l))
        append_round(digit.within_each, m - first - l - (last ? 0 : 1), rounds[m]);
    }
  }
  return rounds;
}

Rounds base_graph(std::span<const int> peers, int k) {
  std::size_t q = peers.size();
  for (std::size_t factor = 2; factor <= static_cast<std::size_t>(k) + 1; ++factor)
    while (q % factor == 0) q /= factor;
  const std::size_t p = peers.size() / q;

  Rounds rounds;
  const auto append_aside = [&rounds](const Rounds& part, std::size_t begin) {
    rounds.resize(std::max(rounds.size(), begin + part.size()));
    for (std::size_t m = 0; m < part.size(); ++m) append_round(part, m, rounds[begin + m]);
  };
  for (std::size_t part = 0; part < p; ++part)
    append_aside(simple_base_graph(peers.subspan(part * q, q), k), 0);
  const std::size_t across = rounds.size();
  for (std::size_t place = 0; place < q; ++place) {
    std::vector<int> line;
    for (std::size_t part = 0; part < p; ++part) line.push_back(peers[part * q + place]);
    append_aside(hyper_hypercube(line, k), across);
  }
  Rounds simple = simple_base_graph(peers, k);
  return simple.size() < rounds.size() ? simple : rounds;
}

const ParameterSet<FiniteTimeOptions>& finite_time_parameters() {
  static const auto set = ParameterSet<FiniteTimeOptions>().add(
      "k", &FiniteTimeOptions::k,
      {.help = "most neighbours of a peer in a round", .minimum = 1, .maximum = 64});
  return set;
}

TopologyKind finite_time_kind(Rounds (*rounds_of)(std::span<const int> peers, int k)) {
  TopologyKind kind;
  kind.source = "Takezawa et al. 2023 (arXiv:2305.11420)";
  kind.parameters = finite_time_parameters().specs();
  kind.make = [rounds_of](const TopologyContext& context,
                          const ParameterValues& values) -> Result<std::unique_ptr<Topology>> {
    GOSSAMER_TRY(const FiniteTimeOptions options,
                 finite_time_parameters().read("topology", values));
    std::vector<int> peers(static_cast<std::size_t>(context.peers));
    std::iota(peers.begin(), peers.end(), 0);
    Rounds rounds = rounds_of(peers, options.k);
    if (rounds.empty()) rounds.emplace_back();  // one peer: a round without edges
    return weighted_topology(context.peers, rounds);
  };
  return kind;
}

}  // namespace gossamer::topology
