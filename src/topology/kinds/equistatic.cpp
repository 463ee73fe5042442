// EquiStatic: a few circular shifts, drawn at random and averaged. Its gap does not shrink with n
// for M ~ log n shifts.
#include <algorithm>
#include <cmath>
#include <map>

#include "topology/building.hpp"
#include "topology/weights.hpp"

namespace gossamer::topology::kinds::equistatic {
namespace {

struct EquistaticOptions {
  int m = 0;
  bool directed = false;
};

const ParameterSet<EquistaticOptions>& parameters() {
  static const auto set =
      ParameterSet<EquistaticOptions>()
          .add("m", &EquistaticOptions::m,
               {.help = "number M of averaged shifts; 0: ⌈log2 n⌉ if directed, else half of it",
                .minimum = 0,
                .maximum = 4096})
          .add("directed", &EquistaticOptions::directed,
               {.help = "true: D-EquiStatic; false: U-EquiStatic, (W + Wᵀ)/2"});
  return set;
}

/// W = 1/M Σ_m A(a_m), where in A(a) peer i weighs the row of i − a with (n − 1)/n, and keeps
/// 1/n (Song et al. 2022, eq. 3 and 4); undirected half of it to i − a, half to i + a (eq. 6).
WeightRows weigh_shifts(int n, const std::vector<int>& shifts, bool directed) {
  std::map<int, double> weight_of;  // by offset: shifts that were drawn twice weigh twice
  const double weight = (n - 1.0) / n / static_cast<double>(shifts.size());
  for (const int shift : shifts) {
    weight_of[n - shift] += directed ? weight : weight / 2;
    if (!directed) weight_of[shift] += weight / 2;
  }
  WeightRows rows;
  for (int i = 0; i < n; ++i) {
    std::vector<Neighbour> others;
    for (const auto& [offset, share] : weight_of) others.push_back({(i + offset) % n, share});
    std::sort(others.begin(), others.end(),
              [](const Neighbour& x, const Neighbour& y) { return x.peer < y.peer; });
    rows.push_back(complete_row(i, std::move(others)));
  }
  return rows;
}

}  // namespace

TopologyKind descriptor() {
  TopologyKind kind;
  kind.name = "equistatic";
  kind.summary =
      "the average of M random circular shifts: M or 2M neighbours, and a gap that does not shrink "
      "with n";
  kind.source = "Song et al. 2022 (arXiv:2210.07881)";
  kind.parameters = parameters().specs();
  kind.make = [](const TopologyContext& context,
                 const ParameterValues& values) -> Result<std::unique_ptr<Topology>> {
    GOSSAMER_TRY(const EquistaticOptions options, parameters().read("topology", values));
    const int n = context.peers;
    if (n == 1) return weighted_topology(WeightRows{{{0, 1.0}}});
    const double log2_n = std::ceil(std::log2(n));
    const int m = options.m > 0
                      ? options.m
                      : static_cast<int>(options.directed ? log2_n : std::ceil(log2_n / 2));
    return weighted_topology(weigh_shifts(n, draw_shifts(n, m, context.seed), options.directed),
                             {n});
  };
  return kind;
}

}  // namespace gossamer::topology::kinds::equistatic
