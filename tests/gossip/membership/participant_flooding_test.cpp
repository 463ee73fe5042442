// What a peer of an open run takes from its partners: changes that a peer can announce, in time,
// and not more than a network of its size has.
#include "gossip/membership/participant_flooding.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/gossip/membership/open_peer.hpp"

using namespace gossamer;
using namespace gossamer::gossip;
using namespace gossamer::gossip::testing;

TEST_CASE("an open run: changes of participants take effect in the round that was announced") {
  OpenPeer peer;
  CHECK(peer.receive_change(2, 1, 4 * kNotice).ok());
  CHECK(peer.at(4 * kNotice - 1) == std::vector{0, 1});
  CHECK(peer.at(4 * kNotice) == std::vector{0, 1, 2});
  CHECK(peer.receive_change(2, 1, 3 * kNotice)
            .ok());  // of two announcements the earlier round counts
  CHECK(peer.at(3 * kNotice) == std::vector{0, 1, 2});
  CHECK(peer.receive_change(2, 1, 5 * kNotice).ok());
  CHECK(peer.at(3 * kNotice) == std::vector{0, 1, 2});
  CHECK(peer.membership->leave());
  CHECK_FALSE(peer.membership->leave());
  CHECK(peer.at(100) == std::vector{1, 2});
}

TEST_CASE(
    "an open run: where all leave at once, each announces that it stays, and may leave again") {
  OpenPeer peer;
  const Round leaves = kNotice;
  CHECK(peer.membership->leave());
  CHECK(peer.at(leaves) == std::vector{1});
  CHECK(peer.receive_change(1, 2, leaves).ok());  // it did not know
  CHECK(peer.at(leaves) == std::vector{0, 1});
  CHECK_FALSE(peer.membership->leave());
  peer.begin_round(leaves - 1);
  CHECK(std::ranges::count(peer.to_1.sent, ControlMessage::participant, &ChunkHeader::control) ==
        2);  // its own change, and that of peer 1
  peer.begin_round(leaves);
  CHECK(peer.to_1.sent.back().control == ControlMessage::participant);
  CHECK(peer.to_1.sent.back().link_state.version == 3);
  CHECK(peer.to_1.sent.back().round == leaves + kNotice);
  CHECK(peer.receive_change(1, 3, leaves + kNotice).ok());
  CHECK(peer.receive_change(2, 1, leaves + kNotice).ok());
  CHECK(peer.at(leaves + kNotice) == std::vector{0, 1, 2});
  CHECK(peer.membership->leave());
  CHECK(peer.at(90) == std::vector{1, 2});
}

TEST_CASE("an open run: a peer that joins leaves once it has joined") {
  OpenPeer peer;
  peer.membership->join();
  CHECK(peer.membership->leave());
  CHECK(peer.at(100) == std::vector{0, 1});  // nothing is announced of rounds it knows nothing of
}

TEST_CASE("an open run: a peer that leaves rounds out leaves after them") {
  OpenPeer peer;
  peer.endpoint().skip_to_round(50);  // in which a neighbour may wait for its row
  CHECK(peer.membership->leave());
  CHECK(peer.at(53) == std::vector{0, 1});
  CHECK(peer.at(54) == std::vector{1});
}

TEST_CASE("an open run: a change that no peer can announce is refused, and changes nothing") {
  OpenPeer peer;
  CHECK_FALSE(peer.receive_change(3, 1, kNotice).ok());  // no peer
  CHECK_FALSE(peer.receive_change(65535, 1, kNotice).ok());
  CHECK_FALSE(peer.receive_change(2, 0, kNotice).ok());  // no change
  CHECK_FALSE(peer.receive_change(2, 0xFFFFFFFF, kNotice).ok());
  CHECK_FALSE(peer.receive_change(2, 1, 0).ok());  // before the start
  CHECK_FALSE(
      peer.receive_change(2, 1, kNotice + 1).ok());  // in a round in which none takes effect
  CHECK(peer.changing->participants().changes().size() == 1);
  CHECK(peer.receive_change(1, 1, kNotice).ok());  // known
  CHECK(peer.changing->participants().changes().size() == 1);
}

TEST_CASE("an open run: a partner that makes up changes without end is cut off") {
  OpenPeer peer;
  std::uint32_t taken = 0;
  while (taken < 100'000 &&
         peer.receive_change(2, taken + 1, kNotice * (100'000 + taken % 30)).ok())
    ++taken;
  CHECK(taken > 1000);
  CHECK(taken < 2000);  // 1,024, and 16 for each end of a link
  CHECK(peer.changing->participants().changes().size() <= 31);
}

TEST_CASE("an open run: a partner that makes up earlier and earlier changes is cut off too") {
  for (const bool same_round : {true, false}) {
    OpenPeer peer;
    std::uint32_t taken = 0;
    while (taken < 100'000 &&
           peer.receive_change(2, 200'000 - taken, kNotice * (100'000 - (same_round ? 0 : taken)))
               .ok())
      ++taken;
    CHECK(taken > 1000);
    CHECK(taken < 2000);
  }
}

TEST_CASE("an open run: a peer knows itself whether it leaves") {
  OpenPeer peer;
  // In time for all to learn of it: the change never takes effect.
  CHECK(peer.receive_change(0, 2, 4 * kNotice).ok());
  CHECK(peer.to_1.sent.back().link_state.version == 3);
  CHECK(peer.to_1.sent.back().round == 4 * kNotice);
  CHECK(peer.changing->participants().changes().size() == 1);
  // Not in time: the others may see it leave, until the round from which on it says that it stays.
  peer.begin_round(8 * kNotice - 1);
  CHECK(peer.receive_change(0, 4, 8 * kNotice).ok());
  CHECK(peer.to_1.sent.back().link_state.version == 5);
  CHECK(peer.to_1.sent.back().round == 9 * kNotice);
  CHECK(peer.at(8 * kNotice) == std::vector{0, 1});
  // There is always a later version with which it stays.
  CHECK_FALSE(peer.receive_change(0, 2 * 90 + 4, 90).ok());
  CHECK(peer.receive_change(0, 2 * 90 + 2, 90).ok());
  CHECK(peer.to_1.sent.back().link_state.version == 2 * 90 + 3);
  CHECK(peer.to_1.sent.back().round == 93);
  CHECK(peer.membership->leave());
}

TEST_CASE("an open run: of a peer no more changes to come are kept than there can be") {
  OpenPeer peer;
  for (std::uint32_t k = 1; k <= 100; ++k) CHECK(peer.receive_change(2, k, kNotice * (k + 1)).ok());
  CHECK(peer.changing->participants().changes().size() == 1 + 16);
  CHECK(peer.receive_change(1, 2, 4 * kNotice).ok());  // of another peer
  CHECK(peer.at(4 * kNotice) == std::vector{0, 2});
}

TEST_CASE("an open run: a peer that asks for rows and then accepts an offer is granted nothing") {
  OpenPeer peer;
  peer.membership->on_link_lost(1, "lost");
  peer.membership->on_link_restored(1);
  const auto receive = [&](ControlMessage message, Round round, const LinkState& state = {}) {
    return peer.exchange->deliver(control_chunk(1, 0, message, round, state)).ok();
  };
  CHECK(receive(ControlMessage::request_state, 0));
  CHECK(receive(ControlMessage::offer_round, 2 * kNotice));
  receive(ControlMessage::link_restored, 2 * kNotice, {1, 0, 2, false});
  task<bool> attending = peer.membership->begin_round(1);
  attending.start(peer.scheduler);
  peer.scheduler.run();
  CHECK(attending.done());
}

TEST_CASE("an open run: a joining peer takes offers of rounds to come, as often as they are made") {
  OpenPeer peer;
  peer.membership->join();
  peer.membership->on_link_restored(1);
  peer.membership->on_link_restored(2);
  REQUIRE(peer.receive(2, ControlMessage::resync, 5).ok());  // so that it asks peer 2 for rows
  const auto offer = [&](Round first) {
    return peer.exchange->deliver(control_chunk(1, 0, ControlMessage::offer_round, first)).ok();
  };
  CHECK_FALSE(offer(0));
  CHECK(offer(kNotice));
  CHECK(offer(2 * kNotice));
  CHECK_FALSE(offer(0));
  CHECK(peer.endpoint().view().present_since(1) == 2 * kNotice);
  peer.membership->on_link_lost(1, "lost");
  CHECK_FALSE(peer.endpoint().view().is_present(1));
}

TEST_CASE("an open run: a peer that joins asks one that made an offer, if its donor is lost") {
  const auto asked = [](const RecordingLink& link) {
    return std::ranges::count(link.sent, ControlMessage::request_state, &ChunkHeader::control);
  };
  for (const bool has_donor : {true, false}) {
    OpenPeer peer;
    peer.membership->join();
    peer.membership->on_link_restored(1);
    peer.membership->on_link_restored(2);
    if (has_donor) REQUIRE(peer.receive(1, ControlMessage::resync, 5).ok());
    CHECK(asked(peer.to_1) == (has_donor ? 1 : 0));
    REQUIRE(peer.receive(2, ControlMessage::offer_round, 4 * kNotice).ok());
    CHECK(asked(peer.to_2) == (has_donor ? 0 : 1));
    peer.membership->on_link_lost(1, "lost");
    CHECK(asked(peer.to_2) == 1);
  }
}

TEST_CASE("an open run: both ends of a link propose rounds, and rows follow what they agree on") {
  const std::vector<float> values(kFloodedLength, 1.0F);
  for (const ControlMessage kind : {ControlMessage::offer_round, ControlMessage::propose_round})
    for (const bool same : {true, false}) {
      CAPTURE(same);
      OpenPeer peer;
      const auto send_row = [&](Round t) {
        return peer.exchange->deliver(Chunk({1, 0, t, 0, 0, kFloodedLength}, values, {})).ok();
      };
      const auto kept = [&] { return peer.endpoint().messenger().unread_bytes() > 0; };
      peer.membership->on_link_lost(1, "lost");
      peer.membership->on_link_restored(1);
      REQUIRE(peer.receive(1, ControlMessage::resync, 5).ok());
      REQUIRE(peer.to_1.sent.back().control == ControlMessage::propose_round);
      const Round proposed = peer.to_1.sent.back().round;
      peer.endpoint().begin_at(proposed);  // no peer waits for this one, so it skips to that round
      CHECK(send_row(proposed));
      CHECK_FALSE(kept());  // for a round that peer 1 has proposed, or is to propose
      CHECK(peer.receive(1, kind, same ? proposed : proposed + 1).ok());
      CHECK(peer.membership->flooding().table().reachable().size() == (same ? 2 : 1));
      CHECK(send_row(proposed + 1));
      CHECK(kept() == same);
      CHECK(peer.receive(1, ControlMessage::link_restored, proposed, {1, 0, 2, false}).ok());
      CHECK(send_row(proposed + 2));
      CHECK(kept());
    }
}

TEST_CASE("messages of open runs are refused in a run that is none") {
  LonePeer peer(0);
  CHECK_FALSE(peer.receive(ControlMessage::participant, 30, {1, 0, 1, false}).ok());
  CHECK_FALSE(peer.receive(ControlMessage::offer_round, 30).ok());
  peer.membership.on_link_lost(1, "lost");
  peer.membership.on_link_restored(1);
  CHECK_FALSE(peer.receive(ControlMessage::participant, 30, {1, 0, 1, false}).ok());
  CHECK_FALSE(peer.receive(ControlMessage::offer_round, 30).ok());
}
