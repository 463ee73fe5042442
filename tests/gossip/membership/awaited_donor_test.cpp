// How long a peer that joins waits for the rows of its donor: as long as the donor goes on.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/gossip/membership/open_peer.hpp"

using namespace gossamer;
using namespace gossamer::gossip;
using namespace gossamer::gossip::testing;
using namespace std::chrono_literals;

namespace {

constexpr Time kLimit = 1s;

/// The messages of a kind, of which rows have none.
long count(const RecordingLink& link, ControlMessage message) {
  return std::ranges::count(link.sent, message, &ChunkHeader::control);
}

}  // namespace

TEST_CASE(
    "a peer that joins waits for a donor that does its rounds, and not for one that stopped") {
  OpenPeer peer(kLimit);
  std::vector<int> overdue;
  peer.exchange->faults().on_overdue = [&](int, int late, const Error&) {
    overdue.push_back(late);
  };
  peer.membership->join();
  peer.membership->on_link_restored(1);
  REQUIRE(peer.receive(1, ControlMessage::resync, 5).ok());
  task<Round> admission = peer.membership->await_admission();
  admission.start(peer.scheduler);
  peer.scheduler.run();
  REQUIRE(count(peer.to_1, ControlMessage::request_state) == 1);
  const auto pass = [&](double limits) {
    for (Time passed{0}; passed < kLimit * limits; passed += kLimit / 100)
      peer.exchange->on_tick(kLimit / 100);
  };
  for (Round t = 6; t < 30; ++t) {
    pass(0.9);
    REQUIRE(peer.receive(1, ControlMessage::change_begun, t).ok());
  }
  CHECK(overdue.empty());
  for (int times = 0; times < 3; ++times) {
    pass(0.4);
    REQUIRE(peer.receive(1, ControlMessage::change_begun, 29).ok());  // which is no news
  }
  CHECK(overdue == std::vector{1});
}

TEST_CASE("a donor that gives its rows in a later round says in each round that it goes on") {
  OpenPeer donor(kLimit);
  donor.membership->on_link_restored(2);
  REQUIRE(donor.receive(2, ControlMessage::request_state, 0).ok());
  const Round first = kNotice;  // in which the peer is to take part
  REQUIRE(donor.at(first) == std::vector{0, 1, 2});
  donor.begin_round(1);
  CHECK(count(donor.to_2, ControlMessage::change_begun) == 1);
  CHECK(donor.to_2.sent.back().round == 1);
  CHECK(count(donor.to_2, ControlMessage::none) == 0);
  donor.begin_round(first - 1);
  CHECK(count(donor.to_2, ControlMessage::change_begun) == 1);
  CHECK(count(donor.to_2, ControlMessage::none) > 0);
  CHECK(count(donor.to_2, ControlMessage::propose_round) == 1);
}
