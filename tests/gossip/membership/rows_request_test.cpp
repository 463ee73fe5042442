// What becomes of a peer's request for rows when its link takes effect in another way.
#include <doctest/doctest.h>

#include "tests/gossip/membership/lone_peer.hpp"

using namespace gossamer;
using namespace gossamer::gossip;
using namespace gossamer::gossip::testing;

TEST_CASE("a peer that asks for rows and then agrees on a round is granted nothing") {
  LonePeer peer(0);
  peer.membership.on_link_lost(1, "lost");
  peer.membership.on_link_restored(1);
  CHECK(peer.receive(ControlMessage::request_state, 0).ok());
  CHECK(peer.receive(ControlMessage::resync, 3).ok());
  Round agreed = 4;  // the round that this peer proposes
  while (agreed < 20 && !peer.node.endpoint().view().is_present(1)) {
    CHECK(peer.receive(ControlMessage::link_restored, agreed, {1, 0, 2, false}).ok());
    ++agreed;
  }
  REQUIRE(peer.node.endpoint().view().is_present(1));
  task<bool> attending = peer.membership.begin_round(1);
  attending.start(peer.scheduler);
  peer.scheduler.run();
  CHECK(attending.done());
}
