// EquiDyn: one neighbour a round, by a circular shift that is drawn anew in each round. A factor
// that does not depend on n bounds the expected distance to consensus.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "base/philox.hpp"
#include "topology/building.hpp"
#include "topology/weights.hpp"

namespace gossamer::topology::kinds::equidyn {
namespace {

struct EquidynOptions {
  int m = 0;
  double eta = 0.5;
  bool directed = false;
};

const ParameterSet<EquidynOptions>& parameters() {
  static const auto set =
      ParameterSet<EquidynOptions>()
          .add(
              "m", &EquidynOptions::m,
              {.help = "number M of shifts that the rounds draw from, those of equistatic with the "
                       "same seed; 0: all n − 1",
               .minimum = 0,
               .maximum = 4096})
          .add("eta", &EquidynOptions::eta,
               {.help = "η in W = (1 − η) I + η A, where A gives the neighbour's row the weight "
                        "(n − 1)/n; at 0.5 the paper's rates hold",
                .minimum = 0,
                .maximum = 1,
                .minimum_excluded = true})
          .add("directed", &EquidynOptions::directed,
               {.help = "true: OD-EquiDyn, a directed shift; false: OU-EquiDyn, pairs"});
  return set;
}

/// Pairs (i, i + shift), taken in the order i = first, first + 1, … (all modulo n) wherever neither
/// peer is in a pair yet: OU-EquiDyn of Song et al. 2022, and OUEquiDyn of the authors'
/// EquiTopo.py. partner[i] is i for a peer that is left over.
std::vector<int> pair_up(int n, int shift, int first) {
  std::vector<int> partner(static_cast<std::size_t>(n));
  std::iota(partner.begin(), partner.end(), 0);
  for (int k = 0; k < n; ++k) {
    const int i = (first + k) % n, j = (i + shift) % n;
    int &a = partner[static_cast<std::size_t>(i)], &b = partner[static_cast<std::size_t>(j)];
    if (a != i || b != j) continue;
    a = j;
    b = i;
  }
  return partner;
}

class EquiDyn final : public Topology {
 public:
  EquiDyn(const TopologyContext& context, const EquidynOptions& options)
      : peers_(context.peers),
        seed_(context.seed),
        directed_(options.directed),
        weight_(options.eta * (context.peers - 1) / context.peers) {
    if (options.m > 0) {
      shifts_ = draw_shifts(peers_, options.m, seed_);
    } else {
      shifts_.resize(static_cast<std::size_t>(peers_ - 1));
      std::iota(shifts_.begin(), shifts_.end(), 1);
    }
  }

  int peers() const override { return peers_; }
  int period() const override { return 0; }
  RandomLaw law() const override {
    return {.undirected = !directed_, .alike = false, .mean_square_factor = [this](bool lazy) {
              return mean_square_factor(lazy ? weight_ / 2 : weight_);
            }};
  }

  Graph graph(Round t) const override {
    Graph graph{std::vector<std::vector<int>>(static_cast<std::size_t>(peers_))};
    const std::vector<int> from = sources(t);
    for (int i = 0; i < peers_; ++i)
      if (const int j = from[static_cast<std::size_t>(i)]; j != i)
        graph.out[static_cast<std::size_t>(j)] = {i};
    return graph;
  }

  std::optional<WeightRows> weights(Round t) const override {
    WeightRows rows;
    const std::vector<int> from = sources(t);
    for (int i = 0; i < peers_; ++i) {
      const int j = from[static_cast<std::size_t>(i)];
      rows.push_back(complete_row(
          i, j == i ? std::vector<Neighbour>{} : std::vector<Neighbour>{{j, weight_}}));
    }
    return rows;
  }

 private:
  /// Of each peer, the one whose row it mixes in round t; itself where there is none. A shift u is
  /// drawn; directed, the row of i − u goes to i, else pairs form from a peer that is drawn too.
  std::vector<int> sources(Round t) const {
    constexpr Round kFirst = 1U << 20;  // past the draws of draw_shifts
    RandomStream random(seed_, kNoPeer, Purpose::topology, kFirst + t);
    const int shift = shifts_[random.below(static_cast<std::uint32_t>(shifts_.size()))];
    if (!directed_)
      return pair_up(peers_, shift,
                     static_cast<int>(random.below(static_cast<std::uint32_t>(peers_))));
    std::vector<int> from(static_cast<std::size_t>(peers_));
    for (int i = 0; i < peers_; ++i)
      from[static_cast<std::size_t>(i)] = (i + peers_ - shift) % peers_;
    return from;
  }

  /// With the weight w a round multiplies the square of wave k by |1 − w + w ω^{uk}|² = 1 −
  /// 2w(1 − w)(1 − cos(2πuk/n)) in the directed case. In the other one E WᵀW = I − 2w(1 − w) E L
  /// with the Laplacian L of the pairs, as L² = 2L; the law does not change where all peers are
  /// shifted, so the waves are eigenvectors of E L, and those of the same |1 − ω^{uk}|² times the
  /// share of peers that u pairs. The factor is that of the worst wave.
  double mean_square_factor(double w) const {
    constexpr double kMostSteps = 5e7;
    const auto n = static_cast<std::size_t>(peers_);
    double slowest = std::numeric_limits<double>::infinity();
    if (directed_ && shifts_.size() == n - 1) {
      slowest = static_cast<double>(n) / static_cast<double>(n - 1);  // equal for all waves
    } else {
      if (static_cast<double>(n) * static_cast<double>(shifts_.size()) > kMostSteps)
        return std::numeric_limits<double>::quiet_NaN();
      std::vector<double> turns(n), shares;
      for (std::size_t k = 0; k < n; ++k)
        turns[k] =
            1 - std::cos(2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n));
      for (const int shift : shifts_) shares.push_back(directed_ ? 1 : paired_share(shift));
      for (std::size_t k = 1; k <= n / 2; ++k) {  // wave n − k is the mirror image of wave k
        double sum = 0;
        for (std::size_t m = 0; m < shifts_.size(); ++m)
          sum += shares[m] * turns[static_cast<std::size_t>(shifts_[m]) * k % n];
        slowest = std::min(slowest, sum / static_cast<double>(shifts_.size()));
      }
    }
    return 1 - 2 * w * (1 - w) * slowest;
  }

  /// The share of the peers that are in a pair; the same from whichever peer the pairs form.
  double paired_share(int shift) const {
    const std::vector<int> partner = pair_up(peers_, shift, 0);
    int alone = 0;
    for (int i = 0; i < peers_; ++i) alone += partner[static_cast<std::size_t>(i)] == i;
    return 1 - static_cast<double>(alone) / peers_;
  }

  int peers_;
  std::uint64_t seed_;
  bool directed_;
  double weight_;  ///< of the neighbour's row
  std::vector<int> shifts_;
};

}  // namespace

TopologyKind descriptor() {
  TopologyKind kind;
  kind.name = "equidyn";
  kind.summary =
      "each round draws a circular shift, and every peer has at most one neighbour, that far from "
      "it: OU-EquiDyn in pairs, OD-EquiDyn directed";
  kind.source = "Song et al. 2022 (arXiv:2210.07881)";
  kind.parameters = parameters().specs();
  kind.make = [](const TopologyContext& context,
                 const ParameterValues& values) -> Result<std::unique_ptr<Topology>> {
    GOSSAMER_TRY(const EquidynOptions options, parameters().read("topology", values));
    if (context.peers == 1) return weighted_topology(WeightRows{{{0, 1.0}}});
    return std::unique_ptr<Topology>(std::make_unique<EquiDyn>(context, options));
  };
  return kind;
}

}  // namespace gossamer::topology::kinds::equidyn
