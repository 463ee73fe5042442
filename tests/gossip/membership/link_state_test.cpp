// Membership messages to one peer: what it stores, forwards, answers and refuses.
#include <algorithm>
#include <limits>
#include <set>

#include "tests/gossip/membership/lone_peer.hpp"

using namespace gossamer;
using namespace gossamer::gossip;
using namespace gossamer::gossip::testing;
using namespace std::chrono_literals;

TEST_CASE(
    "an impossible message about rounds and proposals is a protocol violation, and has no other "
    "effect") {
  struct Message {
    ControlMessage control;
    Round round;
  };
  struct Case {
    int here;
    std::vector<Message> received;  ///< all but the last is taken
  };
  constexpr Round kMost = std::numeric_limits<Round>::max();
  const Case cases[] = {
      {0, {{ControlMessage::resync, kMost - 1}}},  // a round after it is none
      {0,
       {{ControlMessage::resync, 5},
        {ControlMessage::propose_round, 20}}},  // the lower id proposes
      {0, {{ControlMessage::resync, 5}, {ControlMessage::reject_round, kMost - 2}}},
      {0, {{ControlMessage::reject_round, 5}}},
      {1, {{ControlMessage::propose_round, kMost}}},
      {1,
       {{ControlMessage::request_state, 0},
        {ControlMessage::propose_round, 7}}},  // a joining peer proposes nothing
      {1,
       {{ControlMessage::request_state, 0},
        {ControlMessage::request_state, 0},
        {ControlMessage::propose_round, 7}}},
      {1, {{ControlMessage::propose_round, 7}, {ControlMessage::propose_round, 9}}},
      {1, {{ControlMessage::propose_round, 7}, {ControlMessage::resync, 9}}}};
  for (const Case& c : cases) {
    CAPTURE(&c - cases);
    LonePeer peer(c.here);
    peer.membership.on_link_lost(1 - c.here, "its connection broke");
    peer.membership.on_link_restored(1 - c.here);
    for (const Message& message : c.received) {
      const Status status = peer.receive(message.control, message.round);
      CHECK(status.ok() == (&message != &c.received.back()));
      if (!status.ok())
        CHECK(status.error().message.find(fmt::format("peer {} broke the protocol", 1 - c.here)) ==
              0);
    }
    // As the network does then. What it had asked for is forgotten.
    peer.membership.on_link_lost(1 - c.here, "it broke the protocol");
    task<bool> attending = peer.membership.begin_round(1);
    attending.start(peer.scheduler);
    peer.scheduler.run();
    CHECK(attending.done());
    CHECK_FALSE(peer.node.endpoint().view().is_present(1 - c.here));
  }
}

TEST_CASE(
    "a proposal or a resync never takes a peer to the end of its run, and skips are counted") {
  for (const int here : {0, 1}) {
    const ControlMessage message =
        here == 0 ? ControlMessage::resync : ControlMessage::propose_round;
    for (const Round round : {Round{40}, Round{100}, Round{100} + kLargestMargin}) {
      LonePeer peer(here);
      peer.membership.on_link_lost(1 - here, "its connection broke");
      peer.membership.on_link_restored(1 - here);
      peer.exchange.endpoint(here).begin_at(3);
      REQUIRE(peer.receive(message, round).ok());
      Endpoint& endpoint = peer.exchange.endpoint(here);
      const Round next = endpoint.next_round(3, 100);
      CHECK(next == (round >= 100 ? 4 : here == 0 ? 42 : 40));
      CHECK(endpoint.rounds_left_out() == next - 4);
    }
  }
}

TEST_CASE("a control message of a round far beyond the run is a protocol violation") {
  LonePeer peer(1);
  peer.membership.on_link_lost(0, "its connection broke");
  peer.membership.on_link_restored(0);
  const Status status = peer.receive(ControlMessage::propose_round, 100 + kLargestMargin + 2);
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().message.ends_with("the run has 100 rounds"));
}

TEST_CASE("a row of a round that no neighbour can have reached is a protocol violation") {
  const std::vector<float> row(kFloodedLength);
  struct Owner final : BufferOwner {
    void on_lease_end() override {}
  } owner;  // outlives the peer, which keeps the row that it accepts
  LonePeer peer(1);
  peer.exchange.endpoint(1).begin_at(3);
  const auto receive = [&](Round round) {
    return peer.exchange.deliver(Chunk({0, 1, round, 0, 0, kFloodedLength}, row, Lease(owner)));
  };
  CHECK(receive(4).ok());
  const Status status = receive(6);
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().message.ends_with(
      "this peer is in round 3, and a neighbour is at most 2 rounds ahead"));
}

namespace {

/// A link that keeps the messages.
struct ReceivingLink : Link {
  void send(Chunk chunk) override {
    received.push_back({chunk.header.control, chunk.header.round});
    states.push_back(chunk.header.link_state);
    if (!chunk.header.link_state.reachability_only) reinitialising.insert(chunk.header.round);
  }
  std::vector<std::pair<ControlMessage, Round>> received;
  std::vector<LinkState> states;
  std::set<Round> reinitialising;  ///< rounds of updates that schedule a reinitialisation
};

}  // namespace

TEST_CASE("an update is forwarded once, and one that is late is published as one of this round") {
  VirtualScheduler scheduler;
  InlineExecutor executor;
  gpu::CpuDevice device{1};
  Compute compute{scheduler, executor, device, nullptr, StepTimes{}};
  const auto matrices = schedule("path", 4);
  ExchangeOptions options;
  options.channels = channels_of({{.name = "x", .mixed = true}}, kFloodedLength);
  options.rounds = 100;
  Exchange exchange{scheduler, compute, *matrices, options, {1}, [](const Error&) {}};
  ReceivingLink first, third;
  exchange.connect(1, 0, first);
  exchange.connect(1, 2, third);
  Rows<float> rows{4, kFloodedLength};
  std::vector<RowSpec> specs{{.name = "x", .mixed = true}};
  Node node{exchange, 1, 4, specs, {{rows.row(0)}, {rows.row(1)}, {}, {}}};
  using Partners = std::vector<std::vector<int>>;
  Membership membership{
      exchange, node, {std::make_shared<const Partners>(Partners{{1}, {0, 2}, {1, 3}, {2}})}};
  const auto receive_of = [&](int end, int other, ControlMessage message, Round round,
                              std::uint32_t version, bool reachability_only = false) {
    const LinkState state{end, other, version, reachability_only};
    CHECK(exchange.deliver(control_chunk(2, 1, message, round, state)).ok());
  };
  const auto receive = [&](ControlMessage message, Round round, std::uint32_t changes,
                           bool reachability_only = false) {
    receive_of(2, 3, message, round, changes, reachability_only);
  };
  const auto go_to = [&](Round t) {
    node.endpoint().begin_at(t);
    task<bool> attending = membership.begin_round(t);
    attending.start(scheduler);
    scheduler.run();
    CHECK(attending.done());
    return attending.result();
  };
  using Sent = std::vector<std::pair<ControlMessage, Round>>;

  go_to(10);
  receive(ControlMessage::link_lost, 9, 1);
  receive(ControlMessage::link_lost, 9, 1);
  CHECK(first.received == Sent{{ControlMessage::link_lost, 9}});
  CHECK(third.received.empty());
  receive(ControlMessage::link_restored, 12, 2);
  CHECK(first.received.back() == std::pair{ControlMessage::link_restored, Round{12}});
  first.received.clear();
  for (Round t = 11; t <= 30; ++t) CHECK(go_to(t) == (t == 9 + 4 || t == 12 + 4));
  // All of it once more, from partners that received it later.
  receive(ControlMessage::link_lost, 9, 1);
  receive(ControlMessage::link_restored, 12, 2);
  receive(ControlMessage::link_restored, 12, 2, true);
  CHECK(first.received.empty());
  CHECK(third.received.empty());
  // A loss in between that had not arrived here: all peers reinitialise n rounds from now, the
  // sender included.
  receive(ControlMessage::link_lost, 14, 3);
  CHECK(first.received == Sent{{ControlMessage::link_lost, 14}, {ControlMessage::link_lost, 30}});
  CHECK(third.received == Sent{{ControlMessage::link_lost, 30}});
  // The other end lost it too: the reinitialisation is scheduled already.
  receive_of(3, 2, ControlMessage::link_lost, 13, 1);
  CHECK(first.received.back() == std::pair{ControlMessage::link_lost, Round{13}});
  CHECK(third.received.size() == 1);
  CHECK(membership.flooding().table().reachable() == std::vector<int>{0, 1, 2});
  for (Round t = 31; t <= 40; ++t) CHECK(go_to(t) == (t == 30 + 4));
  // An update of the state only is new, but schedules no reinitialisation.
  receive(ControlMessage::link_restored, 33, 4, true);
  CHECK(first.received.back() == std::pair{ControlMessage::link_restored, Round{33}});
  CHECK(membership.flooding().table().reachable() ==
        std::vector<int>{0, 1, 2});  // where neither end has lost it
  receive_of(3, 2, ControlMessage::link_restored, 33, 2, true);
  CHECK(membership.flooding().table().reachable() == std::vector<int>{0, 1, 2, 3});
  for (Round t = 41; t <= 50; ++t) CHECK_FALSE(go_to(t));
  // Each end publishes its own state, and rounds do not order updates: lost before the round in
  // which the link was to take effect.
  receive_of(3, 2, ControlMessage::link_lost, 50, 3);
  receive(ControlMessage::link_lost, 50, 5);
  receive(ControlMessage::link_restored, 60, 6);
  CHECK(membership.flooding().table().reachable() == std::vector<int>{0, 1, 2});
  receive_of(3, 2, ControlMessage::link_restored, 60, 4);
  CHECK(membership.flooding().table().reachable() == std::vector<int>{0, 1, 2, 3});
  receive(ControlMessage::link_lost, 51, 7);
  CHECK(membership.flooding().table().reachable() == std::vector<int>{0, 1, 2});
  // A restored neighbour receives the scheduled reinitialisations, in rounds 54, 55 and 64, even if
  // the link state that caused one is outdated.
  membership.on_link_lost(0, "its connection broke");
  membership.on_link_restored(0);
  CHECK(exchange.deliver(control_chunk(0, 1, ControlMessage::resync, 50)).ok());
  first.reinitialising.clear();
  CHECK(exchange.deliver(control_chunk(0, 1, ControlMessage::propose_round, 58)).ok());
  CHECK(first.reinitialising == std::set<Round>{50, 51, 58, 60});
  for (Round t = 51; t <= 70; ++t) CHECK(go_to(t) == (t == 54 || t == 55 || t == 62 || t == 64));
  // An update that another peer has published anew, and that is late here too, is not published
  // again: it would circulate for ever.
  first.received.clear();
  third.received.clear();
  receive(ControlMessage::link_lost, 56, 7);
  CHECK(first.received.empty());
  CHECK(third.received.empty());
}

TEST_CASE(
    "a link that is lost before the round from which it was to count is lost, and counts again "
    "when it is back") {
  LonePeer peer(1);
  const auto both = std::vector<int>{0, 1}, alone = std::vector<int>{1};
  peer.membership.on_link_lost(0, "its connection broke");
  for (int k = 0; k < 3; ++k) {
    CHECK(peer.membership.flooding().table().reachable() == alone);
    peer.membership.on_link_restored(0);
    CHECK(peer.receive(ControlMessage::resync, 5).ok());
    CHECK(peer.receive(ControlMessage::propose_round, 50).ok());  // the same one each time
    CHECK(peer.membership.flooding().table().reachable() == both);
    peer.membership.on_link_lost(0, "its connection broke again");
  }
  CHECK(peer.membership.flooding().table().reachable() == alone);
}

TEST_CASE(
    "a peer that invents link states fills no more memory than the links and the rounds of the run "
    "allow") {
  LonePeer peer(1);
  ReceivingLink other;
  peer.exchange.connect(1, 0, other);
  Status status;
  std::uint32_t sent = 0;
  for (std::uint32_t k = 1; k <= 5000 && status.ok(); ++k)
    for (const Round since : {Round{k}, Round{20 * k}, kLargestMargin - k}) {
      status = peer.receive(k % 2 == 0 ? ControlMessage::link_restored : ControlMessage::link_lost,
                            since, k % 4 < 2 ? LinkState{0, 1, k} : LinkState{1, 0, k});
      if (!status.ok()) break;
      ++sent;
    }
  CHECK(peer.membership.flooding().stored_entries() <= 2 + peer.options.rounds);
  CHECK(peer.membership.flooding().stored_entries() > 50);
  CHECK(sent > 1000);  // and then its sender is charged
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().message.starts_with("peer 0 broke the protocol"));
  CHECK(status.error().message.ends_with("it sends more than 1088 changes of links in 10 s"));
}

TEST_CASE("link states that one neighbour invents are forwarded no faster than others accept") {
  LonePeer middle(1, 3);
  ReceivingLink other, back;
  middle.exchange.connect(1, 2, other);
  middle.exchange.connect(1, 0, back);
  for (std::uint32_t k = 1; k <= 1000; ++k)
    REQUIRE(middle
                .receive(k % 2 == 0 ? ControlMessage::link_restored : ControlMessage::link_lost, 0,
                         LinkState{0, 1, k, true})
                .ok());
  const double burst = 1024 + 16 * (3 + 4);
  CHECK(static_cast<double>(other.states.size()) <= burst / 2);
  CHECK(other.states.size() > 500);
  CHECK(other.states.back().version < 1000);
  other.states.clear();
  middle.scheduler.run();  // the rest is forwarded later, as the newest state alone
  CHECK(other.states == std::vector<LinkState>{{0, 1, 1000, true}});
}

TEST_CASE(
    "a peer supersedes the link states of its earlier incarnation, and nothing "
    "begins again") {
  LonePeer peer(1);
  ReceivingLink other;
  peer.exchange.connect(1, 0, other);
  const auto last_said = [&] {
    return std::tuple(other.received.size(), other.received.back(), other.states.back());
  };
  using Sent = std::pair<ControlMessage, Round>;
  CHECK(peer.receive(ControlMessage::link_lost, 7, {1, 0, 5, true}).ok());
  CHECK(last_said() ==
        std::tuple(1, Sent{ControlMessage::link_restored, 0}, LinkState{1, 0, 6, true}));
  CHECK(peer.membership.flooding().table().reachable() == std::vector<int>{0, 1});
  CHECK(peer.receive(ControlMessage::link_restored, 9, {1, 0, 8, true}).ok());  // which is true
  CHECK(other.received.size() == 1);
  task<bool> attending = peer.membership.begin_round(20);
  attending.start(peer.scheduler);
  peer.scheduler.run();
  CHECK_FALSE(attending.result());
  peer.membership.on_link_lost(0, "its connection broke");
  CHECK(peer.membership.flooding().table().reachable() == std::vector<int>{1});
  peer.membership.on_link_restored(0);
  CHECK(peer.receive(ControlMessage::resync, 5).ok());
  CHECK(peer.receive(ControlMessage::propose_round, 50).ok());
  const auto answer = std::ranges::find(other.states, LinkState{1, 0, 10});
  REQUIRE(answer != other.states.end());
  CHECK(other.received[static_cast<std::size_t>(answer - other.states.begin())] ==
        Sent{ControlMessage::link_restored, 50});
}

TEST_CASE("an invented version makes no peer send an update that its partners refuse") {
  for (const std::uint32_t made_up : {0xFFFF'FFFFU, 0xFFFF'FFFEU, 0xFFFF'FFFDU}) {
    CAPTURE(made_up);
    LonePeer peer(1);
    ReceivingLink other;
    peer.exchange.connect(1, 0, other);
    CHECK(peer.receive(made_up % 2 == 0 ? ControlMessage::link_restored : ControlMessage::link_lost,
                       7, {1, 0, made_up})
              .ok());
    for (int k = 0; k < 3; ++k) {
      peer.membership.on_link_lost(0, "its connection broke");
      peer.membership.on_link_restored(0);
      CHECK(peer.receive(ControlMessage::resync, 5).ok());
      other.states.clear();
      other.received.clear();
      CHECK(peer.receive(ControlMessage::propose_round, 99).ok());
      REQUIRE(other.received.size() > 0);
      CHECK(other.received.front() ==
            std::pair{ControlMessage::link_restored, Round{99}});  // the answer
      for (std::size_t i = 0; i < other.received.size(); ++i) {
        const std::uint32_t changes = other.states[i].version;
        CHECK(changes > 0);
        CHECK(changes % 2 == (other.received[i].first == ControlMessage::link_lost ? 1 : 0));
      }
    }
  }
}

TEST_CASE("a neighbour is given rows when its first round may be the next one, and only then") {
  constexpr Round kMost = std::numeric_limits<Round>::max();
  for (const Round first : {Round{0}, Round{8}, Round{200}, kMost}) {
    CAPTURE(first);
    LonePeer peer(1);
    ReceivingLink other;
    peer.exchange.connect(1, 0, other);
    peer.membership.on_link_lost(0, "its connection broke");
    peer.membership.on_link_restored(0);
    // A round beyond the run is refused, or waits until the neighbour goes.
    const Status status = peer.receive(ControlMessage::request_state, first);
    CHECK(status.ok() == (first < kMost));
    std::optional<Round> proposed;
    for (Round t = 5; t < 10; ++t) {
      peer.exchange.endpoint(1).begin_at(t);
      other.received.clear();
      task<bool> attending = peer.membership.begin_round(t);
      attending.start(peer.scheduler);
      peer.scheduler.run();
      REQUIRE(attending.done());
      for (const auto& [message, round] : other.received)
        if (message == ControlMessage::propose_round) {
          CHECK_FALSE(proposed);
          CHECK(round == t + 1);
          proposed = round;
        }
    }
    if (first <= 8) CHECK(proposed == std::max<Round>(first, 6));
    else CHECK_FALSE(proposed);
  }
}

TEST_CASE("a joining peer knows whether it has a donor") {
  using DonorSearch = Membership::DonorSearch;
  LonePeer peer(0);
  CHECK(peer.membership.donor_search() == DonorSearch::not_needed);
  peer.membership.join();
  CHECK(peer.membership.donor_search() == DonorSearch::no_neighbour);
  peer.membership.on_link_restored(1);
  CHECK(peer.membership.donor_search() == DonorSearch::only_joining);
  CHECK(peer.receive(ControlMessage::resync, 3).ok());
  CHECK(peer.membership.donor_search() == DonorSearch::requested);
  // No donor is beyond the run, or has done so many steps that counting on would overflow.
  CHECK_FALSE(peer.receive(ControlMessage::propose_round, 101).ok());
  Chunk chunk = control_chunk(1, 0, ControlMessage::propose_round, 50);
  chunk.header.donor_steps = kMostLocalSteps + 1;
  CHECK_FALSE(peer.exchange.deliver(std::move(chunk)).ok());
  peer.membership.on_link_lost(1, "it died");
  CHECK(peer.membership.donor_search() == DonorSearch::no_neighbour);
}
