// A peer's view: presence by round, what it leaves of W, and the deviations on record.
#include "gossip/peer_view.hpp"

#include "tests/gossip/test_util.hpp"

using namespace gossamer;
using namespace gossamer::gossip;
using namespace gossamer::gossip::testing;

namespace {

std::vector<int> peers_of(std::span<const topology::Neighbour> neighbours) {
  std::vector<int> peers;
  for (const topology::Neighbour& neighbour : neighbours) peers.push_back(neighbour.peer);
  return peers;
}

}  // namespace

TEST_CASE("a lost peer is absent, and a restored one is present from its round on") {
  const auto matrices = schedule("complete", 4);
  const auto w = matrices->at(0);
  PeerView view(0, *matrices);
  CHECK(view.is_complete());
  CHECK(view.remove(2));
  CHECK_FALSE(view.remove(2));
  CHECK_FALSE(view.is_complete());
  CHECK_FALSE(view.is_present(2));
  CHECK(peers_of(view.in_neighbours(*w, 9)) == std::vector<int>{1, 3});
  view.restore(2, 12);
  CHECK(view.present_since(2) == 12);
  CHECK(view.present_since(1) == 0);
  CHECK(view.is_present(2));
  CHECK_FALSE(view.is_present(2, 11));
  CHECK(peers_of(view.in_neighbours(*w, 11)) == std::vector<int>{1, 3});
  CHECK(peers_of(view.in_neighbours(*w, 12)) == std::vector<int>{1, 2, 3});
  const std::span<const int> out = view.out_neighbours(*w, 12);
  CHECK(std::vector<int>(out.begin(), out.end()) == std::vector<int>{1, 2, 3});
}

TEST_CASE("the weights that absent out-neighbours would give fall to the own row") {
  const auto matrices = schedule("complete", 4);
  const auto w = matrices->at(0);
  PeerView view(0, *matrices);
  const double own = w->self_weight(0);
  CHECK(view.own_weight(*w, 0) == own);
  view.remove(1);
  view.remove(3);
  double lost = 0;
  for (const topology::Neighbour& neighbour : w->in_neighbours(0))
    if (neighbour.peer != 2) lost += neighbour.weight;
  CHECK(view.own_weight(*w, 0) == doctest::Approx(own + lost));
  CHECK(view.is_mirrored(*w));
}

TEST_CASE("deviations: absent neighbours of a mix, and all neighbours of a skipped round") {
  const auto matrices = schedule("ring", 4);
  PeerView view(0, *matrices);
  view.record_absent(5, 1);
  CHECK(view.take_deviations().empty());
  view.remove(3);
  view.record_absent(5, 1);
  const auto absent = view.take_deviations();
  REQUIRE(absent.size() == 1);
  CHECK(absent[0].round == 5);
  CHECK(absent[0].from == 3);
  CHECK(absent[0].channel == 1);
  CHECK(absent[0].missing);
  view.record_skipped(*matrices->at(6), 6, 0);
  CHECK(view.take_deviations().size() == 2);
  CHECK(view.take_deviations().empty());
}
