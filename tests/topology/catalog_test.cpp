// Every kind of the catalog × n × weights: built and right, or refused with an n that works.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "tests/topology/test_util.hpp"
#include "topology/graph.hpp"

using namespace gossamer::topology;
using namespace gossamer::topology::test;

namespace {

std::vector<std::string> names() {
  std::vector<std::string> result;
  for (const TopologyKind& kind : kinds::catalog()) result.push_back(kind.name);
  return result;
}

/// The kinds that can be built with their defaults.
std::vector<std::string> names_that_build() {
  std::vector<std::string> result;
  for (const TopologyKind& kind : kinds::catalog())
    if (!kind.needs_values) result.push_back(kind.name);
  return result;
}

/// W against what the schedule promises, entry by entry on the dense matrix, independently of the
/// checks that made it.
void check_matrix(const MixingMatrix& w, const Graph& graph) {
  const Eigen::MatrixXd whole = dense(w);
  const int n = w.peers();
  CHECK((whole.array() >= 0).all());
  CHECK((whole.rowwise().sum().array() - 1).abs().maxCoeff() < 1e-12);
  CHECK((whole.colwise().sum().array() - 1).abs().maxCoeff() < 1e-12);
  int missing = 0, extra = 0;
  for (int from = 0; from < n; ++from) {
    const auto& out = graph.out[static_cast<std::size_t>(from)];
    for (int to = 0; to < n; ++to) {
      const bool edge = std::binary_search(out.begin(), out.end(), to);
      if (edge && whole(to, from) == 0) ++missing;
      if (!edge && to != from && whole(to, from) != 0) ++extra;
    }
    const auto out_neighbours = w.out_neighbours(from);
    CHECK(std::vector<int>(out_neighbours.begin(), out_neighbours.end()) == out);
  }
  CHECK(missing == 0);
  CHECK(extra == 0);
  CHECK(w.symmetric() == (whole == whole.transpose()));
  if (is_symmetric(graph)) CHECK(w.symmetric());
}

void check_refusal(const Network& refused, const std::string& message) {
  CAPTURE(message);
  CHECK(message.find(refused.request.kind) != std::string::npos);
  const std::vector<int> sizes = workable(message);
  CHECK_FALSE(sizes.empty());
  for (const int n : sizes) {
    Network other = refused;
    other.request.context.peers = n;
    CHECK(other.refusal() == "");
  }
}

}  // namespace

TEST_CASE("the catalog: sorted names, each with a summary, parameters with help") {
  const auto all = names();
  CHECK(std::is_sorted(all.begin(), all.end()));
  for (const char* wanted :
       {"complete", "grid", "hypercube", "one_peer_exponential", "path", "ring", "star", "torus"})
    CHECK(std::count(all.begin(), all.end(), wanted) == 1);
  for (const TopologyKind& kind : kinds::catalog()) {
    CHECK_FALSE(kind.summary.empty());
    for (const auto& parameter : kind.parameters) CHECK_FALSE(parameter.notes.help.empty());
  }
  std::string list;
  for (const std::string& name : all) list += (list.empty() ? "" : ", ") + name;
  CHECK(find_kind("rign").error().message == "topology.kind: 'rign' is not one of " + list);
}

TEST_CASE("every kind × n in 1..64 × weights: right, or refused with an n that works") {
  for (const std::string& kind : names_that_build())
    for (int n = 1; n <= 64; ++n) {
      CAPTURE(kind);
      CAPTURE(n);
      if (const std::string refusal = network(kind, n).refusal(); !refusal.empty()) {
        CHECK(n > 1);
        check_refusal(network(kind, n), refusal);
        continue;
      }
      const auto topology = find_kind(kind)->make({n, 0}, {});
      REQUIRE(topology.ok());
      for (const WeightOptions& weights : weighings_of(kind, n)) {
        CAPTURE(to_string(weights));
        const auto schedule = network(kind, n).weighed(weights).schedule();
        CHECK(schedule->peers() == n);
        CHECK(schedule->period() == (*topology)->period());
        const auto period = static_cast<Round>(schedule->period());
        for (Round t = 0; t < period; ++t) {
          check_matrix(*schedule->at(t), (*topology)->graph(t));
          CHECK(schedule->at(t + 5 * period).get() ==
                schedule->at(t).get());  // cached, and periodic
        }
        const double gap = spectral_gap(*schedule);
        CHECK(gap > 0);
        CHECK(gap <= 1 + 1e-12);
      }
    }
}

TEST_CASE("lazy is (I + W)/2") {
  for (const std::string& kind : names_that_build()) {
    const auto plain = network(kind, 16).schedule(), lazy = network(kind, 16).lazy().schedule();
    for (Round t = 0; t < static_cast<Round>(plain->period()); ++t) {
      const Eigen::MatrixXd expected =
          (Eigen::MatrixXd::Identity(16, 16) + dense(*plain->at(t))) / 2;
      CHECK((dense(*lazy->at(t)) - expected).cwiseAbs().maxCoeff() < 1e-15);
    }
  }
}

TEST_CASE("one peer mixes nothing, two peers are one edge") {
  for (const std::string& kind : names_that_build()) {
    CAPTURE(kind);
    const TopologyReport alone = network(kind, 1).report(1000);
    CHECK(alone.edges == 0);
    CHECK(alone.degree_max == 0);
    CHECK(alone.diameter == 0);
    CHECK(alone.spectral_gap == 1);
    CHECK(alone.bytes_per_round_per_peer == 0);
    CHECK(dense(*network(kind, 1).schedule()->at(0)) == Eigen::MatrixXd::Ones(1, 1));
    if (!network(kind, 2).try_schedule().ok()) continue;
    const TopologyReport pair = network(kind, 2).report();
    CHECK(pair.edges == 1);
    CHECK(pair.diameter == 1);
    CHECK(pair.symmetric);
    // Two peers average at once, but for the weights of EquiDyn, 1/4, and for MATCHA, which leaves
    // out half of the rounds.
    const double gap = kind == "equidyn" ? 0.5 : kind == "matcha" ? 1 - std::sqrt(0.5) : 1;
    CHECK(pair.spectral_gap == doctest::Approx(gap).epsilon(1e-5));
  }
}

TEST_CASE("equal hashes are equal matrices, and every difference is a different hash") {
  std::map<std::string, std::string> matrices_of;  // hash → the matrices, written out
  std::set<std::string> seen;
  for (const std::string& kind : names_that_build())
    for (int n = 1; n <= 24; ++n)
      for (const WeightOptions& weights : weighings_of(kind, n)) {
        const auto result = network(kind, n).weighed(weights).try_schedule();
        if (!result.ok() || (*result)->period() == 0) continue;
        std::string written;
        for (const auto& w : period_matrices(**result)) {
          for (const auto& row : w)
            written.append(reinterpret_cast<const char*>(row.data()), row.size() * sizeof(double));
          written += "round";
        }
        const std::string hash = (*result)->hash();
        CHECK(hash == network(kind, n).weighed(weights).schedule()->hash());
        CHECK(matrices_of.emplace(hash, written).first->second == written);
        seen.insert(written);
      }
  CHECK(seen.size() == matrices_of.size());
}

TEST_CASE("the hash sees parameters, and does not change from one version to the next unnoticed") {
  CHECK(network("torus", 36).schedule()->hash() !=
        network("torus", 36).set("rows", 4).schedule()->hash());
  CHECK(network("torus", 36).schedule()->hash() ==
        network("torus", 36).set("rows", 6).schedule()->hash());
  CHECK(network("ring", 16).schedule()->hash() == "fd38b8e255ebc076bfbf488acb0712cc");
}

TEST_CASE(
    "torus and grid: what cannot be laid out is refused with the sizes, and with what to do") {
  CHECK(network("torus", 14).refusal() ==
        "topology torus cannot be built for 14 peers: 2 by 7 is the squarest layout: both sides "
        "must be at least 3, or "
        "wrap-around edges fall on others (choose grid or ring); n = 12 or n = 15 works");
  CHECK(workable(network("torus", 2).refusal()) == std::vector{9});
  CHECK(workable(network("torus", 12).set("rows", 5).refusal()) == std::vector{15});
  CHECK(workable(network("torus", 17).set("rows", 4).set("cols", 4).refusal()) == std::vector{16});
  CHECK(network("torus", 16)
            .set("rows", 2)
            .refusal()
            .find("2 by 8 would be the layout: both sides") != std::string::npos);
  CHECK(network("torus", 16).set("rows", -1).refusal() ==
        "topology.rows: -1 is too small, give at least 0");
  CHECK(network("torus", 16)
            .set("rows", gossamer::ParameterValue((std::int64_t{1} << 32) + 4))
            .refusal() != "");
  CHECK(network("torus", 16).set("depth", 2).refusal() ==
        "topology.depth: unknown; there are: rows, cols");
  CHECK(network("grid", 13)
            .refusal()
            .find("1 by 13 is the squarest layout: a grid of one row is a path") !=
        std::string::npos);
  CHECK(network("grid", 13).set("rows", 1).schedule()->hash() ==
        network("path", 13).schedule()->hash());
  CHECK(network("grid", 13).set("cols", 1).schedule()->hash() ==
        network("path", 13).schedule()->hash());
  CHECK(network("grid", 12).set("cols", 3).report().diameter == 5);
}

TEST_CASE("how many peers: refused below 1, above the most, and where a kind has its own most") {
  for (const std::string& kind : names_that_build()) {
    for (const int n : {0, -3, kMaximumPeers + 1, std::numeric_limits<int>::max()})
      check_refusal(network(kind, n), network(kind, n).refusal());
  }
  // Long rows too sum to 1 within 1e-12. A star's centre of 65,356 is the worst of all if summed in
  // double: 1.8e-12.
  for (const char* kind : {"ring", "star", "grid", "one_peer_exponential"})
    CHECK(network(kind, kMaximumPeers - 2).refusal() == "");
  CHECK(network("star", 65356).refusal() == "");
  CHECK(network("complete", 1003).refusal() == "");
  CHECK(workable(network("complete", 8193).refusal()) == std::vector{8192});
  CHECK(network("ring", 1000).set("rows", 3).refusal() ==
        "topology.rows: unknown; it takes no parameters here");
}
