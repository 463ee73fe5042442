// After which rounds sums over the peers are whole, so that they may be kept: up to a change of a
// link, and after the reinitialisation that it schedules.
#include "tests/gossip/membership/lone_peer.hpp"

using namespace gossamer;
using namespace gossamer::gossip;
using namespace gossamer::gossip::testing;

TEST_CASE("a change of a link in a far round leaves sums whole until then") {
  LonePeer peer(0);
  const LinkStateFlooding& flooding = peer.membership.flooding();
  const auto go_to = [&](Round t) {
    peer.node.endpoint().begin_at(t);
    task<bool> begun = peer.membership.begin_round(t);
    begun.start(peer.scheduler);
    peer.scheduler.run();
    CHECK(begun.done());
  };
  const auto whole_rounds = [&] {
    std::vector<std::pair<Round, Round>> spans;  // first and last
    for (Round t = 1; t <= 100; ++t) {
      if (!flooding.sums_are_whole(t)) continue;
      if (spans.empty() || spans.back().second != t - 1) spans.emplace_back(t, t);
      spans.back().second = t;
    }
    return spans;
  };
  using Spans = std::vector<std::pair<Round, Round>>;
  CHECK(whole_rounds() == Spans{{1, 100}});
  // Reinitialised in round 82.
  CHECK(peer.receive(ControlMessage::link_lost, 80, {1, 0, 1, false}).ok());
  CHECK(whole_rounds() == Spans{{1, 80}, {83, 100}});
  // Too late for a reinitialisation.
  CHECK(peer.receive(ControlMessage::link_restored, 99, {1, 0, 2, false}).ok());
  CHECK(whole_rounds() == Spans{{1, 80}, {83, 99}});
  // At once: others may have begun round 1 before this peer learns of the change.
  CHECK(peer.receive(ControlMessage::link_lost, 1, {1, 0, 3, false}).ok());
  CHECK(whole_rounds() == Spans{{4, 80}, {83, 99}});
  for (Round t = 1; t <= 81; ++t) go_to(t);
  CHECK(whole_rounds() == Spans{{4, 80}, {83, 99}});
  go_to(82);
  CHECK(whole_rounds() == Spans{{83, 99}});
}
