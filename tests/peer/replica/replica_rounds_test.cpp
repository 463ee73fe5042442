// The rounds from which the workers of a replica can resume together, and lies about them.
#include "peer/replica/replica_rounds.hpp"

#include <cmath>
#include <deque>
#include <map>

#include "tests/text_test_util.hpp"

using namespace gossamer;
using namespace gossamer::peer;

namespace {

using Rounds = std::vector<gossip::Round>;

/// What other workers have sent, by part, and what they get.
class Script final : public train::WorkerLinks<float> {
 public:
  void send(int part, std::span<const float> values) override {
    sent[part].emplace_back(values.begin(), values.end());
  }
  void receive(int part, std::span<float> values) override {
    std::deque<std::vector<float>>& waiting = incoming[part];
    if (waiting.empty() || waiting.front().size() != values.size())
      throw train::WorkerLost("worker is lost");
    std::ranges::copy(waiting.front(), values.begin());
    waiting.pop_front();
  }
  bool trains(std::uint64_t, std::uint64_t) override { return true; }
  bool is_whole() override { return true; }
  void close() override {}

  /// As a worker sends them.
  void come(int part, const std::vector<double>& numbers) {
    Script other;
    train::send_numbers<float>(other, 0, numbers);
    incoming[part].push_back(other.sent[0].front());
  }
  void come_rounds(int part, const std::vector<double>& rounds) {
    come(part, {static_cast<double>(rounds.size())});
    if (!rounds.empty()) come(part, rounds);
  }

  std::map<int, std::deque<std::vector<float>>> incoming;
  std::map<int, std::vector<std::vector<float>>> sent;
};

WorkerPlace part(int number) { return {.replica = 3, .part = number}; }

}  // namespace

TEST_CASE("worker 0 keeps the rounds of all, and all learn them") {
  Script links;
  links.come_rounds(1, {10, 20, 30});
  links.come_rounds(2, {0, 20, 30});
  const auto common = rounds_of_replica(part(0), 3, links, {20, 30, 40});
  REQUIRE(common.ok());
  CHECK(*common == Rounds{20, 30});
  CHECK(links.sent[1] == links.sent[2]);
  // Another worker that gets this.
  Script other;
  for (const std::vector<float>& message : links.sent[1]) other.incoming[0].push_back(message);
  const auto learned = rounds_of_replica(part(1), 3, other, {10, 20, 30});
  REQUIRE(learned.ok());
  CHECK(*learned == Rounds{20, 30});
}

TEST_CASE("a worker starts from no round of which it has no checkpoint, whatever another sends") {
  Script links;
  links.come_rounds(0, {10, 50});
  const auto common = rounds_of_replica(part(1), 2, links, {10, 20});
  REQUIRE(common.ok());
  CHECK(*common == Rounds{10});
}

TEST_CASE("no common round is an error that names the replica") {
  Script links;
  links.come_rounds(1, {0});
  const auto none = rounds_of_replica(part(0), 2, links, {10, 20});
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().kind == ErrorKind::invalid);
  CHECK(contains(none.error().message, "from which all workers of replica 3 can start"));
  CHECK(contains(none.error().message, "this one can from 10, 20"));
  CHECK(links.sent[1].size() == 1);  // it learns that there are 0
}

TEST_CASE("numbers of rounds, and rounds, that are none end the start") {
  for (const double count : {-1.0, 0.5, 1e7, double{NAN}, double{INFINITY}}) {
    CAPTURE(count);
    Script links;
    links.come(1, {count});
    const auto refused = rounds_of_replica(part(0), 2, links, {0});
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().kind == ErrorKind::lost_peer);
  }
  for (const double round : {-1.0, 0.5, 1e300, double{NAN}}) {
    CAPTURE(round);
    Script links;
    links.come_rounds(1, {round});
    CHECK_FALSE(rounds_of_replica(part(0), 2, links, {0}).ok());
  }
  Script lost;
  CHECK_FALSE(rounds_of_replica(part(0), 2, lost, {0}).ok());
}
