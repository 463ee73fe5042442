// What partners say of links and rounds to one peer, for whom the test speaks: what it makes of it,
// passes on, answers and refuses.
#include <algorithm>
#include <limits>
#include <set>

#include "gossip/links/simulated_link.hpp"
#include "gossip/membership/membership.hpp"
#include "tests/gossip/test_util.hpp"

using namespace gossamer;
using namespace gossamer::gossip;
using namespace gossamer::gossip::testing;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kLength = 10;

/// Peer `here` of a path of two, and nobody at the other end, for whom the test speaks.
struct Lonely {
  explicit Lonely(int here_in) : here(here_in) { exchange.connect(here, 1 - here, nowhere); }
  static ExchangeOptions of_hundred_rounds() {
    ExchangeOptions options{Policy::sync, 16, kLength, 1};
    options.row_lengths = {kLength};
    options.rounds = 100;
    return options;
  }
  Status hear(ControlMessage note, Round round, const LinkState& state = {}) {
    return exchange.deliver(Chunk({1 - here, here, round, 0, 0, 0, note, state}, {}, {}));
  }

  int here;
  VirtualScheduler scheduler;
  InlineExecutor executor;
  gpu::CpuDevice device{1};
  Compute compute{scheduler, executor, device, nullptr, StepTimes{}};
  std::unique_ptr<topology::MixingSchedule> matrices = schedule("path", 2);
  ExchangeOptions options = of_hundred_rounds();
  Exchange exchange{scheduler, compute, *matrices, options, {here}, [](const Error&) {}};
  SimulatedPort port;
  SimulatedLink nowhere{scheduler, exchange, {1h, 0}, port, port, [](const Error&) {}};
  Rows<float> rows{2, kLength};
  std::vector<RowSpec> specs{{.name = "x", .mixed = true}};
  Node node{exchange, here, 2, specs, {{rows.row(0)}, {rows.row(1)}, {}, {}}};
  Membership membership{exchange,
                        node,
                        {std::make_shared<const std::vector<std::vector<int>>>(
                            std::vector<std::vector<int>>{{1}, {0}})}};
};

}  // namespace

TEST_CASE(
    "a partner that says what cannot be of rounds and proposals is refused, and nothing else comes "
    "of it") {
  struct Word {
    ControlMessage note;
    Round round;
  };
  struct Case {
    int here;
    std::vector<Word> heard;  ///< all but the last is taken
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
        {ControlMessage::propose_round, 7}}},  // who joins proposes nothing
      {1,
       {{ControlMessage::request_state, 0},
        {ControlMessage::request_state, 0},
        {ControlMessage::propose_round, 7}}},
      {1, {{ControlMessage::propose_round, 7}, {ControlMessage::propose_round, 9}}},
      {1, {{ControlMessage::propose_round, 7}, {ControlMessage::resync, 9}}}};
  for (const Case& c : cases) {
    CAPTURE(&c - cases);
    Lonely peer(c.here);
    peer.membership.lost(1 - c.here, "its connection broke");
    peer.membership.back(1 - c.here);
    for (const Word& word : c.heard) {
      const Status status = peer.hear(word.note, word.round);
      CHECK(status.ok() == (&word != &c.heard.back()));
      if (!status.ok())
        CHECK(status.error().message.find(fmt::format("peer {} broke the protocol", 1 - c.here)) ==
              0);
    }
    // As the network does then. What it had asked for is forgotten.
    peer.membership.lost(1 - c.here, "it broke the protocol");
    task<bool> attending = peer.membership.begin_round(1);
    attending.start(peer.scheduler);
    peer.scheduler.run();
    CHECK(attending.done());
    CHECK_FALSE(peer.node.endpoint().present(1 - c.here));
  }
}

namespace {

/// Where what is said to a peer is kept.
struct Listening : Link {
  void send(Chunk chunk) override {
    heard.push_back({chunk.head.control, chunk.head.round});
    states.push_back(chunk.head.link_state);
    if (!chunk.head.link_state.reachability_only) news.insert(chunk.head.round);
  }
  std::vector<std::pair<ControlMessage, Round>> heard;
  std::vector<LinkState> states;
  std::set<Round> news;  ///< rounds of what was not called old
};

}  // namespace

TEST_CASE("news is passed on once, and what is too old to begin anew by is told as of this round") {
  VirtualScheduler scheduler;
  InlineExecutor executor;
  gpu::CpuDevice device{1};
  Compute compute{scheduler, executor, device, nullptr, StepTimes{}};
  const auto matrices = schedule("path", 4);
  ExchangeOptions options{Policy::sync, 16, kLength, 1};
  options.row_lengths = {kLength};
  options.rounds = 100;
  Exchange exchange{scheduler, compute, *matrices, options, {1}, [](const Error&) {}};
  Listening first, third;
  exchange.connect(1, 0, first);
  exchange.connect(1, 2, third);
  Rows<float> rows{4, kLength};
  std::vector<RowSpec> specs{{.name = "x", .mixed = true}};
  Node node{exchange, 1, 4, specs, {{rows.row(0)}, {rows.row(1)}, {}, {}}};
  using Partners = std::vector<std::vector<int>>;
  Membership membership{
      exchange, node, {std::make_shared<const Partners>(Partners{{1}, {0, 2}, {1, 3}, {2}})}};
  const auto hear_of = [&](int end, int other, ControlMessage note, Round round,
                           std::uint32_t version, bool old = false) {
    const LinkState state{end, other, version, old};
    CHECK(exchange.deliver(Chunk({2, 1, round, 0, 0, 0, note, state}, {}, {})).ok());
  };
  const auto hear = [&](ControlMessage note, Round round, std::uint32_t changes, bool old = false) {
    hear_of(2, 3, note, round, changes, old);
  };
  const auto go_to = [&](Round t) {
    node.endpoint().begin_at(t);
    task<bool> attending = membership.begin_round(t);
    attending.start(scheduler);
    scheduler.run();
    CHECK(attending.done());
    return attending.result();
  };
  using Said = std::vector<std::pair<ControlMessage, Round>>;

  go_to(10);
  hear(ControlMessage::link_lost, 9, 1);
  hear(ControlMessage::link_lost, 9, 1);
  CHECK(first.heard == Said{{ControlMessage::link_lost, 9}});
  CHECK(third.heard.empty());
  hear(ControlMessage::link_restored, 12, 2);
  CHECK(first.heard.back() == std::pair{ControlMessage::link_restored, Round{12}});
  first.heard.clear();
  for (Round t = 11; t <= 30; ++t) CHECK(go_to(t) == (t == 9 + 4 || t == 12 + 4));
  // All of it once more, from others that heard it later.
  hear(ControlMessage::link_lost, 9, 1);
  hear(ControlMessage::link_restored, 12, 2);
  hear(ControlMessage::link_restored, 12, 2, true);
  CHECK(first.heard.empty());
  CHECK(third.heard.empty());
  // Lost in between, which nobody had heard here: all begin again n rounds from now, the one who
  // told it too.
  hear(ControlMessage::link_lost, 14, 3);
  CHECK(first.heard == Said{{ControlMessage::link_lost, 14}, {ControlMessage::link_lost, 30}});
  CHECK(third.heard == Said{{ControlMessage::link_lost, 30}});
  // The other end says so too: all begin again anyway.
  hear_of(3, 2, ControlMessage::link_lost, 13, 1);
  CHECK(first.heard.back() == std::pair{ControlMessage::link_lost, Round{13}});
  CHECK(third.heard.size() == 1);
  CHECK(membership.reachable() == std::vector<int>{0, 1, 2});
  for (Round t = 31; t <= 40; ++t) CHECK(go_to(t) == (t == 30 + 4));
  // Old news is news, but nothing begins again.
  hear(ControlMessage::link_restored, 33, 4, true);
  CHECK(first.heard.back() == std::pair{ControlMessage::link_restored, Round{33}});
  CHECK(membership.reachable() == std::vector<int>{0, 1, 2});  // where neither end has lost it
  hear_of(3, 2, ControlMessage::link_restored, 33, 2, true);
  CHECK(membership.reachable() == std::vector<int>{0, 1, 2, 3});
  for (Round t = 41; t <= 50; ++t) CHECK_FALSE(go_to(t));
  // Each end tells of its own, and rounds do not say what is later: lost before the round from
  // which it was to count.
  hear_of(3, 2, ControlMessage::link_lost, 50, 3);
  hear(ControlMessage::link_lost, 50, 5);
  hear(ControlMessage::link_restored, 60, 6);
  CHECK(membership.reachable() == std::vector<int>{0, 1, 2});
  hear_of(3, 2, ControlMessage::link_restored, 60, 4);
  CHECK(membership.reachable() == std::vector<int>{0, 1, 2, 3});
  hear(ControlMessage::link_lost, 51, 7);
  CHECK(membership.reachable() == std::vector<int>{0, 1, 2});
  // Who comes back is told when all begin again, also by what is true no more: in rounds 54, 55
  // and 64.
  membership.lost(0, "its connection broke");
  membership.back(0);
  CHECK(exchange.deliver(Chunk({0, 1, 50, 0, 0, 0, ControlMessage::resync}, {}, {})).ok());
  first.news.clear();
  CHECK(exchange.deliver(Chunk({0, 1, 58, 0, 0, 0, ControlMessage::propose_round}, {}, {})).ok());
  CHECK(first.news == std::set<Round>{50, 51, 58, 60});
  for (Round t = 51; t <= 70; ++t) CHECK(go_to(t) == (t == 54 || t == 55 || t == 62 || t == 64));
  // What another one has told anew, too late here, is not told anew once more: it would go round
  // for ever.
  first.heard.clear();
  third.heard.clear();
  hear(ControlMessage::link_lost, 56, 7);
  CHECK(first.heard.empty());
  CHECK(third.heard.empty());
}

TEST_CASE(
    "a link that is lost before the round from which it was to count is lost, and counts again "
    "when it is back") {
  Lonely peer(1);
  const auto both = std::vector<int>{0, 1}, alone = std::vector<int>{1};
  peer.membership.lost(0, "its connection broke");
  for (int k = 0; k < 3; ++k) {
    CHECK(peer.membership.reachable() == alone);
    peer.membership.back(0);
    CHECK(peer.hear(ControlMessage::resync, 5).ok());
    CHECK(peer.hear(ControlMessage::propose_round, 50).ok());  // the same one each time
    CHECK(peer.membership.reachable() == both);
    peer.membership.lost(0, "its connection broke again");
  }
  CHECK(peer.membership.reachable() == alone);
}

TEST_CASE(
    "whoever makes up news of links fills no more memory than the links and the rounds of the run "
    "allow") {
  Lonely peer(1);
  Listening other;
  peer.exchange.connect(1, 0, other);
  for (std::uint32_t k = 1; k <= 5000; ++k)
    for (const Round since : {Round{k}, Round{20 * k}, (Round{1} << 40) - k})
      CHECK(peer.hear(k % 2 == 0 ? ControlMessage::link_restored : ControlMessage::link_lost, since,
                      k % 4 < 2 ? LinkState{0, 1, k} : LinkState{1, 0, k})
                .ok());
  CHECK(peer.membership.remembered() <= 2 + peer.options.rounds);
  CHECK(peer.membership.remembered() > 50);
}

TEST_CASE(
    "what the others know of a peer's links from an earlier life is put right by it, and nothing "
    "begins again") {
  Lonely peer(1);
  Listening other;
  peer.exchange.connect(1, 0, other);
  const auto last_said = [&] {
    return std::tuple(other.heard.size(), other.heard.back(), other.states.back());
  };
  using Said = std::pair<ControlMessage, Round>;
  CHECK(peer.hear(ControlMessage::link_lost, 7, {1, 0, 5, true}).ok());
  CHECK(last_said() ==
        std::tuple(1, Said{ControlMessage::link_restored, 0}, LinkState{1, 0, 6, true}));
  CHECK(peer.membership.reachable() == std::vector<int>{0, 1});
  CHECK(peer.hear(ControlMessage::link_restored, 9, {1, 0, 8, true}).ok());  // which is true
  CHECK(other.heard.size() == 1);
  task<bool> attending = peer.membership.begin_round(20);
  attending.start(peer.scheduler);
  peer.scheduler.run();
  CHECK_FALSE(attending.result());
  peer.membership.lost(0, "its connection broke");
  CHECK(peer.membership.reachable() == std::vector<int>{1});
  peer.membership.back(0);
  CHECK(peer.hear(ControlMessage::resync, 5).ok());
  CHECK(peer.hear(ControlMessage::propose_round, 50).ok());
  const auto answer = std::ranges::find(other.states, LinkState{1, 0, 10});
  REQUIRE(answer != other.states.end());
  CHECK(other.heard[static_cast<std::size_t>(answer - other.states.begin())] ==
        Said{ControlMessage::link_restored, 50});
}

TEST_CASE("a count that nobody can have counted to makes no peer say what its partners refuse") {
  for (const std::uint32_t made_up : {0xFFFF'FFFFU, 0xFFFF'FFFEU, 0xFFFF'FFFDU}) {
    CAPTURE(made_up);
    Lonely peer(1);
    Listening other;
    peer.exchange.connect(1, 0, other);
    CHECK(peer.hear(made_up % 2 == 0 ? ControlMessage::link_restored : ControlMessage::link_lost, 7,
                    {1, 0, made_up})
              .ok());
    for (int k = 0; k < 3; ++k) {
      peer.membership.lost(0, "its connection broke");
      peer.membership.back(0);
      CHECK(peer.hear(ControlMessage::resync, 5).ok());
      other.states.clear();
      other.heard.clear();
      CHECK(peer.hear(ControlMessage::propose_round, 99).ok());
      REQUIRE(other.heard.size() > 0);
      CHECK(other.heard.front() ==
            std::pair{ControlMessage::link_restored, Round{99}});  // the answer
      for (std::size_t i = 0; i < other.heard.size(); ++i) {
        const std::uint32_t changes = other.states[i].version;
        CHECK(changes > 0);
        CHECK(changes % 2 == (other.heard[i].first == ControlMessage::link_lost ? 1 : 0));
      }
    }
  }
}

TEST_CASE("who joins knows whom it may ask") {
  using Help = Membership::Help;
  Lonely peer(0);
  CHECK(peer.membership.help() == Help::needed_no_more);
  peer.membership.join();
  CHECK(peer.membership.help() == Help::nobody);
  peer.membership.back(1);
  CHECK(peer.membership.help() == Help::joiners);
  CHECK(peer.hear(ControlMessage::resync, 3).ok());
  CHECK(peer.membership.help() == Help::asked);
  peer.membership.lost(1, "it died");
  CHECK(peer.membership.help() == Help::nobody);
}
