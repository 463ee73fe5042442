// Epidemic Learning: in each round every peer sends its row to a few others, drawn anew: to its
// neighbours in a random regular graph (EL-Oracle), or to peers that it draws alone (EL-Local).
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/philox.hpp"
#include "topology/building.hpp"

namespace gossamer::topology::kinds::epidemic {
namespace {

constexpr int kMostDegree = 256;

struct EpidemicOptions {
  int degree = 0;
  bool local = false;
};

const ParameterSet<EpidemicOptions>& parameters() {
  static const auto set =
      ParameterSet<EpidemicOptions>()
          .add("degree", &EpidemicOptions::degree,
               {.help = "s, the peers that each peer sends to in a round; 0: ⌈log2 n⌉, or one more "
                        "where n peers have no graph of that degree",
                .minimum = 0,
                .maximum = kMostDegree})
          .add("local", &EpidemicOptions::local,
               {.help = "true: EL-Local, each peer draws its s receivers alone, W keeps only its "
                        "rows and the mean moves; false: EL-Oracle, a random s-regular graph"});
  return set;
}

/// EL-Oracle (de Vos et al. 2023; EL_Oracle_TopologyBuilder of the authors' decentralizepy): a
/// random undirected s-regular graph in each round, connected or not. Metropolis weights are its
/// 1/(s + 1).
class Oracle final : public Topology {
 public:
  Oracle(int peers, std::uint64_t seed, int degree) : peers_(peers), degree_(degree), seed_(seed) {}

  int peers() const override { return peers_; }
  int period() const override { return 0; }
  Graph graph(Round t) const override {
    RandomStream random(seed_, kNoPeer, Purpose::topology, t);
    while (true)
      if (Graph graph = draw_regular(peers_, degree_, random); graph.peers() == peers_)
        return graph;
  }

 private:
  int peers_, degree_;
  std::uint64_t seed_;
};

/// EL-Local (EL_Local.py there): each peer sends to s others, uniform without replacement, and a
/// peer that received r rows averages them with its own, each at 1/(r + 1).
class Local final : public Topology {
 public:
  Local(int peers, std::uint64_t seed, int degree) : peers_(peers), degree_(degree), seed_(seed) {}

  int peers() const override { return peers_; }
  int period() const override { return 0; }
  std::string automatic() const override { return "in_degree"; }
  RandomLaw law() const override {
    return {.undirected = false, .mean_square_factor = [n = peers_, s = degree_](bool lazy) {
              return factor(n, s, lazy);
            }};
  }
  Graph graph(Round t) const override {
    Graph graph;
    for (int j = 0; j < peers_; ++j) graph.out.push_back(receivers(j, t));
    return graph;
  }

 private:
  /// A sample of the n − 1 others by Floyd's algorithm (Bentley and Floyd 1987), ascending.
  std::vector<int> receivers(int sender, Round t) const {
    RandomStream random(seed_, static_cast<std::uint32_t>(sender), Purpose::topology, t);
    std::vector<int> sample;
    for (int last = peers_ - 1 - degree_; last < peers_ - 1; ++last) {
      const int drawn = static_cast<int>(random.below(static_cast<std::uint32_t>(last + 1)));
      const auto place = std::lower_bound(sample.begin(), sample.end(), drawn);
      if (place == sample.end() || *place != drawn) sample.insert(place, drawn);
      else sample.push_back(last);  // larger than all that could be drawn before
    }
    for (int& other : sample) other += other >= sender;
    return sample;
  }

  /// A peer receives r rows, binomial of n − 1 trials with p = s/(n − 1), so q = E 1/(r + 1) =
  /// (1 − (1 − p)^n) / (n p). A row of W has r + 1 entries 1/(r + 1): E ‖W‖_F² = E tr W = n q, of
  /// the lazy W n (1 + 3 q)/4. The peers are alike in law and E WᵀW 1 = 1, so all other eigenvalues
  /// are (E ‖W‖_F² − 1)/(n − 1).
  static double factor(int n, int s, bool lazy) {
    const double p = static_cast<double>(s) / (n - 1);
    const double q = (1 - std::pow(1 - p, n)) / (n * p);
    return std::max(0.0, (n * (lazy ? (1 + 3 * q) / 4 : q) - 1) / (n - 1));
  }

  int peers_, degree_;
  std::uint64_t seed_;
};

int chosen_degree(int n, const EpidemicOptions& options) {
  if (options.degree > 0) return options.degree;
  const int degree = std::bit_width(static_cast<unsigned>(n - 1));  // ⌈log2 n⌉
  return options.local || regular_exists(n, degree) ? degree : degree + 1;
}

}  // namespace

TopologyKind descriptor() {
  TopologyKind kind;
  kind.name = "epidemic";
  kind.summary =
      "each round every peer sends to s others, drawn anew: a random s-regular graph (EL-Oracle), "
      "or s receivers that each peer draws alone (EL-Local)";
  kind.source = "de Vos et al. 2023 (arXiv:2310.01972)";
  kind.parameters = parameters().specs();
  kind.make = [](const TopologyContext& context,
                 const ParameterValues& values) -> Result<std::unique_ptr<Topology>> {
    GOSSAMER_TRY(const EpidemicOptions options, parameters().read("topology", values));
    const int n = context.peers;
    if (n == 1) return static_topology(Graph{{{}}});
    const int degree = chosen_degree(n, options);
    const auto works = [&options, degree](int peers) {
      return options.local ? peers > degree : regular_exists(peers, degree);
    };
    if (!works(n))
      return cannot_build(
          "epidemic", n,
          n <= degree
              ? fmt::format("{} receivers are more than there are other peers", degree)
              : fmt::format("with {} neighbours each, one end of an edge is left over", degree),
          works);
    if (options.local)
      return std::unique_ptr<Topology>(std::make_unique<Local>(n, context.seed, degree));
    return std::unique_ptr<Topology>(std::make_unique<Oracle>(n, context.seed, degree));
  };
  return kind;
}

}  // namespace gossamer::topology::kinds::epidemic
