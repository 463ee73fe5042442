// What a peer of an open run takes from its partners: changes that a peer can announce, in time,
// and not more than a network of its size has.
#include "gossip/membership/participant_flooding.hpp"

#include <doctest/doctest.h>

#include "tests/gossip/membership/lone_peer.hpp"

using namespace gossamer;
using namespace gossamer::gossip;
using namespace gossamer::gossip::testing;

namespace {

/// Peer 0 of an open run of three on a path, of which 0 and 1 take part at the start; the test
/// sends the messages of peer 1.
struct OpenPeer {
  OpenPeer() { exchange.connect(0, 1, dead_end), exchange.connect(0, 2, dead_end); }
  static std::unique_ptr<topology::ChangingSchedule> path() {
    topology::ScheduleRequest request{"path", {}, {}, {3, 1}, {"0,1"}};
    request.open = true;
    return topology::make_schedule(request).value()->copy_if_open();
  }
  Status receive(int peer, std::uint32_t version, Round first) {
    return exchange.deliver(
        control_chunk(1, 0, ControlMessage::participant, first, {peer, 0, version, false}));
  }
  std::vector<int> at(Round t) const { return changing->participants().at(t).peers; }

  VirtualScheduler scheduler;
  InlineExecutor executor;
  gpu::CpuDevice device{1};
  Compute compute{scheduler, executor, device, nullptr, StepTimes{}};
  std::unique_ptr<topology::ChangingSchedule> changing = path();
  ExchangeOptions options = LonePeer::of_hundred_rounds(nullptr);
  Exchange exchange{scheduler, compute, *changing, options, {0}, [](const Error&) {}};
  SimulatedPort port;
  SimulatedLink dead_end{scheduler, exchange, {std::chrono::hours(1), 0},
                         port,      port,     [](const Error&) {}};
  Rows<float> rows{2, kFloodedLength};
  std::vector<RowSpec> specs{{.name = "x", .mixed = true}};
  Node node{exchange, 0, 3, specs, {{rows.row(0)}, {rows.row(1)}, {}, {}}};
  Membership membership{exchange,
                        node,
                        {.partners = std::make_shared<const LonePeer::Partners>(
                             LonePeer::Partners{{1, 2}, {0, 2}, {0, 1}}),
                         .changing = changing.get()}};
};

// Neighbours are at most a round apart, so that news takes two rounds, and one to spare.
constexpr Round kNotice = 3;

}  // namespace

TEST_CASE("an open run: changes of participants take effect in the round that was announced") {
  OpenPeer peer;
  CHECK(peer.receive(2, 1, 4 * kNotice).ok());
  CHECK(peer.at(4 * kNotice - 1) == std::vector{0, 1});
  CHECK(peer.at(4 * kNotice) == std::vector{0, 1, 2});
  CHECK(peer.receive(2, 1, 3 * kNotice).ok());  // of two announcements the earlier round counts
  CHECK(peer.at(3 * kNotice) == std::vector{0, 1, 2});
  CHECK(peer.receive(2, 1, 5 * kNotice).ok());
  CHECK(peer.at(3 * kNotice) == std::vector{0, 1, 2});
  CHECK(peer.membership.leave());
  CHECK_FALSE(peer.membership.leave());
  CHECK(peer.at(100) == std::vector{1, 2});
}

TEST_CASE("an open run: a peer that joins leaves once it has joined") {
  OpenPeer peer;
  peer.membership.join();
  CHECK(peer.membership.leave());
  CHECK(peer.at(100) == std::vector{0, 1});  // nothing is announced of rounds it knows nothing of
}

TEST_CASE("an open run: a peer that leaves rounds out leaves after them") {
  OpenPeer peer;
  peer.exchange.endpoint(0).skip_to_round(50);  // in which a neighbour may wait for its row
  CHECK(peer.membership.leave());
  CHECK(peer.at(53) == std::vector{0, 1});
  CHECK(peer.at(54) == std::vector{1});
}

TEST_CASE("an open run: a change that no peer can announce is refused, and changes nothing") {
  OpenPeer peer;
  CHECK_FALSE(peer.receive(3, 1, kNotice).ok());  // no peer
  CHECK_FALSE(peer.receive(65535, 1, kNotice).ok());
  CHECK_FALSE(peer.receive(2, 0, kNotice).ok());  // no change
  CHECK_FALSE(peer.receive(2, 0xFFFFFFFF, kNotice).ok());
  CHECK_FALSE(peer.receive(2, 1, 0).ok());            // before the start
  CHECK_FALSE(peer.receive(2, 1, kNotice + 1).ok());  // in a round in which none takes effect
  CHECK(peer.changing->participants().changes().size() == 1);
  CHECK(peer.receive(1, 1, kNotice).ok());  // known
  CHECK(peer.changing->participants().changes().size() == 1);
}

TEST_CASE("an open run: a partner that makes up changes without end is cut off") {
  OpenPeer peer;
  std::uint32_t taken = 0;
  while (taken < 100'000 && peer.receive(2, taken + 1, kNotice * (1 + taken % 30)).ok()) ++taken;
  CHECK(taken > 1000);
  CHECK(taken < 2000);  // 1,024, and 16 for each end of a link
  CHECK(peer.changing->participants().changes().size() <= 31);
}

TEST_CASE("an open run: a partner that makes up earlier and earlier changes is cut off too") {
  for (const bool same_round : {true, false}) {
    OpenPeer peer;
    std::uint32_t taken = 0;
    while (taken < 100'000 &&
           peer.receive(2, (1U << 31) - taken, kNotice * (same_round ? 30 : 100'000 - taken)).ok())
      ++taken;
    CHECK(taken > 1000);
    CHECK(taken < 2000);
  }
}

TEST_CASE("an open run: a peer that asks for rows and then accepts an offer is granted nothing") {
  OpenPeer peer;
  peer.membership.on_link_lost(1, "lost");
  peer.membership.on_link_restored(1);
  const auto receive = [&](ControlMessage message, Round round, const LinkState& state = {}) {
    return peer.exchange.deliver(control_chunk(1, 0, message, round, state)).ok();
  };
  CHECK(receive(ControlMessage::request_state, 0));
  CHECK(receive(ControlMessage::offer_round, 2 * kNotice));
  receive(ControlMessage::link_restored, 2 * kNotice, {1, 0, 2, false});
  task<bool> attending = peer.membership.begin_round(1);
  attending.start(peer.scheduler);
  peer.scheduler.run();
  CHECK(attending.done());
}

TEST_CASE("an open run: a joining peer takes offers of rounds to come, as often as they are made") {
  OpenPeer peer;
  peer.membership.join();
  peer.membership.on_link_restored(1);
  const auto offer = [&](Round first) {
    return peer.exchange.deliver(control_chunk(1, 0, ControlMessage::offer_round, first)).ok();
  };
  CHECK_FALSE(offer(0));
  CHECK(offer(kNotice));
  CHECK(offer(2 * kNotice));
  CHECK_FALSE(offer(0));
  CHECK(peer.exchange.endpoint(0).view().present_since(1) == 2 * kNotice);
  peer.membership.on_link_lost(1, "lost");
  CHECK_FALSE(peer.exchange.endpoint(0).view().is_present(1));
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
