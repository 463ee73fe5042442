// The table of link states: versions, and the peers that are reachable by the links that are up.
#include "gossip/membership/link_state_table.hpp"

#include <limits>

#include "gossip/algorithm.hpp"
#include "tests/gossip/test_util.hpp"

using namespace gossamer::gossip;
using namespace gossamer::gossip::testing;

namespace {

/// A path 0 – 1 – 2 – 3, as peer `peer` knows it.
LinkStateTable path_of_four(int peer) {
  return {peer, std::make_shared<const std::vector<std::vector<int>>>(
                    std::vector<std::vector<int>>{{1}, {0, 2}, {1, 3}, {2}})};
}

}  // namespace

TEST_CASE("the higher version of a link end is the later one, in any order of arrival") {
  LinkStateTable table = path_of_four(0);
  CHECK(table.version({1, 2}) == 0);
  CHECK(table.merge({1, 2}, 3));
  CHECK_FALSE(table.merge({1, 2}, 2));
  CHECK_FALSE(table.merge({1, 2}, 3));
  CHECK(table.version({1, 2}) == 3);
  CHECK(table.versions().size() == 1);
}

TEST_CASE("the next version is odd where the link is lost, and never wraps") {
  constexpr LinkVersion kMost = std::numeric_limits<LinkVersion>::max();
  LinkStateTable table = path_of_four(1);
  CHECK(table.next_version({1, 2}, true) == 1);
  CHECK(table.next_version({1, 2}, false) == 2);
  table.merge({1, 2}, 1);
  CHECK(table.next_version({1, 2}, true) == 3);
  CHECK(table.next_version({1, 2}, false) == 2);
  for (const LinkVersion invented : {kMost, kMost - 1}) {
    table.merge({1, 0}, invented);
    CHECK(is_lost(table.next_version({1, 0}, true)));
    CHECK_FALSE(is_lost(table.next_version({1, 0}, false)));
  }
}

TEST_CASE(
    "a link is up where neither end has lost it, and a path of such links makes a peer reachable") {
  LinkStateTable table = path_of_four(1);
  CHECK(table.reachable() == std::vector<int>{0, 1, 2, 3});
  table.merge({3, 2}, 1);
  CHECK(table.reachable() == std::vector<int>{0, 1, 2});
  table.merge({2, 3}, 1);
  table.merge({3, 2}, 2);
  CHECK(table.reachable() == std::vector<int>{0, 1, 2});
  table.merge({2, 3}, 2);
  CHECK(table.reachable() == std::vector<int>{0, 1, 2, 3});
}

TEST_CASE("links that the network does not have are none") {
  const LinkStateTable table = path_of_four(0);
  CHECK(table.is_link({2, 3}));
  for (const LinkEnd& end : {LinkEnd{0, 2}, LinkEnd{3, 4}, LinkEnd{4, 3}, LinkEnd{-1, 0}})
    CHECK_FALSE(table.is_link(end));
}

TEST_CASE("a peer whose links all lead away from it leaves a network not strongly connected") {
  const auto matrices = schedule("exponential", 4);  // i sends to i + 1 and i + 2
  auto partners = std::make_shared<std::vector<std::vector<int>>>();
  for (int i = 0; i < 4; ++i) partners->push_back(mixing_partners(i, *matrices));
  LinkStateTable table(0, partners);
  CHECK(table.is_strongly_connected(*matrices, 0));
  table.merge({0, 1}, 1);
  CHECK(table.is_strongly_connected(*matrices, 0));
  table.merge({3, 1}, 1);  // peer 1 still sends to peer 2
  CHECK(table.reachable() == std::vector<int>{0, 1, 2, 3});
  CHECK_FALSE(table.is_strongly_connected(*matrices, 0));
}

TEST_CASE("of a directed random sequence the rounds that are drawn decide") {
  const auto made = [](bool directed) {
    gossamer::topology::ScheduleRequest request;
    request.kind = "equidyn";
    request.values = {{"m", std::int64_t{1}}, {"directed", directed}};
    request.context.peers = 4;
    auto schedule = gossamer::topology::make_schedule(request);
    REQUIRE(schedule.ok());
    return std::move(schedule).value();
  };
  const auto partners = std::make_shared<const std::vector<std::vector<int>>>(
      std::vector<std::vector<int>>{{1, 2, 3}, {0, 2, 3}, {0, 1, 3}, {0, 1, 2}});
  const auto ring = made(true);  // one shift of 1 or 3: a directed ring in every round
  LinkStateTable table(0, partners);
  CHECK(table.is_strongly_connected(*ring, 0));
  table.merge({0, 2}, 1);  // no edge of the ring
  CHECK(table.is_strongly_connected(*ring, 0));
  table.merge({0, 1}, 1);
  CHECK(table.reachable() == std::vector<int>{0, 1, 2, 3});
  CHECK_FALSE(table.is_strongly_connected(*ring, 0));
  CHECK(table.is_strongly_connected(*made(false), 0));
}
