// How figures of nodes travel to pages: processes of a path, without a network between them.
#include "peer/watch/figure_exchange.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <set>

#include "peer/log/recorder.hpp"
#include "tests/peer/watch/records.hpp"

using namespace gossamer;
using namespace gossamer::peer;
using namespace gossamer::peer::testing;
using namespace std::chrono_literals;

namespace {

constexpr int kNodes = 4;
constexpr std::uint64_t kRounds = 1000;

/// A path of processes with one node each. In a turn, what each one sends arrives at its
/// neighbours before the next one sends.
struct Path {
  explicit Path(std::set<int> pages, int nodes = kNodes, std::uint64_t log_every = 1) {
    shown.resize(static_cast<std::size_t>(nodes));
    for (int node = 0; node < nodes; ++node) {
      FigureExchangeOptions options;
      options.nodes = nodes;
      options.rounds = kRounds;
      options.hosted = {node};
      options.log_every = log_every;
      options.wishes = pages.contains(node);
      options.on_record = [&records = shown[static_cast<std::size_t>(node)]](
                              int of, const Json& record) { records.emplace_back(of, record); };
      options.on_report = [&known = reports[node]](int of, NodeReport report) {
        known[of] = std::move(report);
      };
      processes.push_back(std::make_unique<FigureExchange>(std::move(options)));
    }
  }

  FigureExchange& at(int node) { return *processes[static_cast<std::size_t>(node)]; }

  void turn() {
    now += 1s, clock += 1'000'000;
    for (auto& process : processes)
      if (process) process->begin_turn(now, clock);
    for (int from = 0; from < static_cast<int>(processes.size()); ++from)
      for (const int to : {from - 1, from + 1}) pass(from, to);
  }

  void pass(int from, int to) {
    if (to < 0 || to >= static_cast<int>(processes.size())) return;
    if (!processes[static_cast<std::size_t>(from)] || !processes[static_cast<std::size_t>(to)])
      return;
    const auto sent = at(from).next({from, to}, now);
    if (!sent) return;
    ++frames;
    CHECK(sent->entries.size() <= net::kMaxFiguresBytes);
    REQUIRE(at(to).receive({to, from}, *sent, now).ok());
  }

  /// Rounds of a node that the page of another one has shown.
  std::set<std::uint64_t> rounds(int page, int of) const {
    std::set<std::uint64_t> rounds;
    for (const auto& [node, record] : shown[static_cast<std::size_t>(page)])
      if (node == of) CHECK(rounds.insert(record["round"].get<std::uint64_t>()).second);
    return rounds;
  }

  std::vector<std::unique_ptr<FigureExchange>> processes;
  std::vector<std::vector<std::pair<int, Json>>> shown;
  std::map<int, std::map<int, NodeReport>> reports;  ///< by page and node
  gossip::Time now{0};
  std::uint64_t clock = 1'000'000'000;
  int frames = 0;
};

Json record_of(int node, std::uint64_t round, double loss) {
  return round_of(node, static_cast<int>(round), loss);
}

std::string entry(std::uint32_t node, std::uint64_t version, const std::string& text,
                  std::optional<std::uint32_t> bytes = {}) {
  const std::uint32_t length = bytes.value_or(static_cast<std::uint32_t>(text.size()));
  std::string entry(16, '\0');
  std::memcpy(entry.data(), &node, 4);
  std::memcpy(entry.data() + 4, &length, 4);
  std::memcpy(entry.data() + 8, &version, 8);
  return entry + text;
}

}  // namespace

TEST_CASE("Records of every node reach a page over other processes, one link a turn at least") {
  Path path({0});
  for (int turn = 0; turn < kNodes; ++turn) path.turn();  // the wish travels
  for (int node = 0; node < kNodes; ++node) path.at(node).add(record_of(node, 6, 1.5));
  for (int turn = 0; turn < kNodes; ++turn) path.turn();
  for (int node = 0; node < kNodes; ++node)
    CHECK(path.rounds(0, node) == std::set<std::uint64_t>{6});
  CHECK(path.shown[0].back().second["train_loss"] == 1.5);
  for (int node = 1; node < kNodes; ++node)
    CHECK(path.shown[static_cast<std::size_t>(node)].empty());
}

TEST_CASE("A node's report goes out when it changes, with records and without") {
  Path path({0});
  for (int turn = 0; turn < kNodes; ++turn) path.turn();
  NodeReport report;
  const auto shown_after = [&](const NodeReport& now) {
    path.at(2).report(2, now);
    for (int turn = 0; turn < kNodes; ++turn) path.turn();
    return path.reports[0][2];
  };
  report.suspects = {3};
  CHECK(shown_after(report) == report);  // before any record
  path.at(2).add(record_of(2, 6, 1.5));
  report.suspects = {1, 3}, report.joined = true;
  CHECK(shown_after(report) == report);
  CHECK(path.rounds(0, 2) == std::set<std::uint64_t>{6});
  const int frames = path.frames;
  path.at(2).report(2, report);
  path.turn();
  CHECK(path.frames - frames <= 2 * (kNodes - 1));  // the wish alone
  CHECK(shown_after({}) == NodeReport());
  CHECK(path.rounds(0, 2) == std::set<std::uint64_t>{6});  // once
  // The process with the page knows its own nodes without reports.
  path.at(0).report(0, report);
  path.turn();
  CHECK_FALSE(path.reports[0].contains(0));
}

TEST_CASE("A record that has not gone out goes out with a later report") {
  Path path({0}, 2);
  path.turn();
  NodeReport report;
  path.at(1).report(1, report);
  path.at(1).add(record_of(1, 6, 1.5));
  path.at(1).close_batches(++path.clock);
  report.suspects = {0};
  path.at(1).report(1, report);
  path.at(1).close_batches(++path.clock);
  path.pass(1, 0);
  CHECK(path.rounds(0, 1) == std::set<std::uint64_t>{6});
  CHECK(path.reports[0][1] == report);
  // What has been sent meanwhile is no reason for an entry of its own.
  report.sent_to = Json::array({{0, 30}});
  path.at(1).report(1, report);
  path.at(1).close_batches(++path.clock);
  path.pass(1, 0);
  CHECK(path.reports[0][1].sent_to.is_null());
  path.at(1).add(record_of(1, 7, 1.5));
  path.at(1).close_batches(++path.clock);
  path.pass(1, 0);
  CHECK(path.reports[0][1] == report);
}

TEST_CASE("A report that is too long goes without its events") {
  Path path({0}, 2);
  path.turn();
  NodeReport report;
  report.last_event = 9, report.joined = true;
  report.events = {link_of(1, 0, true, std::string(FigureExchange::entry_limit(2), 'A'))};
  path.at(1).add(record_of(1, 6, 1));
  path.at(1).report(1, report);
  path.turn(), path.turn();
  CHECK(path.rounds(0, 1) == std::set<std::uint64_t>{6});
  report.events.clear();
  CHECK(path.reports[0][1] == report);
}

TEST_CASE("Of the last rounds of a run, which each have a record, some are chosen too") {
  Path path({0}, kNodes, logged_multiple({.every = 1000, .last = 100}));
  for (int turn = 0; turn < kNodes; ++turn) path.turn();
  for (std::uint64_t round = 900; round <= kRounds; ++round) {
    for (int node = 0; node < kNodes; ++node) path.at(node).add(record_of(node, round, 1));
    if (round % 50 == 0) path.turn();
  }
  for (int turn = 0; turn < 2 * kNodes; ++turn) path.turn();
  for (int node = 0; node < kNodes; ++node) {
    CHECK(path.rounds(0, node).contains(kRounds));
    CHECK(path.rounds(0, node).size() <= 3 * FigureExchange::kMostRecords);
  }
}

TEST_CASE("Nothing is sent or kept where no process has a page") {
  Path path({});
  for (int turn = 0; turn < 5; ++turn) {
    for (int node = 0; node < kNodes; ++node)
      path.at(node).add(record_of(node, static_cast<std::uint64_t>(turn), 1));
    path.turn();
  }
  CHECK(path.frames == 0);
  CHECK(path.at(1).kept_bytes() == 0);
}

TEST_CASE("A wish ends with the process that had it, though the others go round in circles") {
  Path path({0});
  for (int turn = 0; turn < 6; ++turn) path.turn();
  for (int node = 1; node < kNodes; ++node) CHECK(path.at(node).is_wished());
  path.processes[0].reset();
  for (int turn = 0; turn < 20; ++turn) {
    for (int node = 1; node < kNodes; ++node)
      path.at(node).add(record_of(node, static_cast<std::uint64_t>(turn), 1));
    path.turn();
  }
  const int frames = path.frames;
  for (int turn = 0; turn < 5; ++turn) path.turn();
  CHECK(path.frames == frames);
  for (int node = 1; node < kNodes; ++node) {
    CHECK_FALSE(path.at(node).is_wished());
    CHECK(path.at(node).kept_bytes() == 0);
  }
}

TEST_CASE("Two pages show the same, and one of them goes on when the other process ends") {
  Path path({0, 3});
  for (int turn = 0; turn < 5; ++turn) path.turn();
  for (int node = 0; node < kNodes; ++node) path.at(node).add(record_of(node, 2, 1));
  for (int turn = 0; turn < 5; ++turn) path.turn();
  for (int node = 0; node < kNodes; ++node) {
    CHECK(path.rounds(0, node).contains(2));
    CHECK(path.rounds(3, node).contains(2));
  }
  path.processes[0].reset();
  for (std::uint64_t round = 3; round < 40; ++round) {
    for (int node = 1; node < kNodes; ++node) path.at(node).add(record_of(node, round, 1));
    path.turn();
  }
  CHECK(*path.rounds(3, 1).rbegin() >= 35);
}

TEST_CASE("Of many records in a turn all processes choose the same rounds") {
  Path path({0}, kNodes, 10);
  for (int turn = 0; turn < 5; ++turn) path.turn();
  std::uint64_t round = 0;
  for (int turn = 0; turn < 4; ++turn) {
    // Each node logs a different number of rounds, and begins its turn elsewhere.
    for (std::uint64_t k = 0; k < 24; ++k, round += 10)
      for (int node = 0; node < kNodes; ++node)
        if (round + 10 * static_cast<std::uint64_t>(node) <= kRounds)
          path.at(node).add(record_of(node, round + 10 * static_cast<std::uint64_t>(node), 1));
    path.turn();
  }
  for (int turn = 0; turn < 5; ++turn) path.turn();
  std::set<std::uint64_t> common = path.rounds(0, 0);
  CHECK(common.size() <= 4 * FigureExchange::kMostRecords);
  for (int node = 1; node < kNodes; ++node)
    std::erase_if(common, [rounds = path.rounds(0, node)](std::uint64_t one) {
      return !rounds.contains(one);
    });
  CHECK(common.size() >= 8);
}

TEST_CASE("Only the roundest record of a turn keeps its sketch, and no entry exceeds its limit") {
  Path path({0}, 2);
  path.turn();
  for (const std::uint64_t round : {3, 4, 5}) {
    Json record = record_of(1, round, 1);
    record["sketch"] = std::string(5464, 'A');
    path.at(1).add(record);
  }
  path.turn(), path.turn();
  for (const auto& [node, record] : path.shown[0])
    CHECK(record.contains("sketch") == (record["round"] == 4));
  Json record = record_of(1, 8, 1);
  record["sketch"] = std::string(FigureExchange::entry_limit(2), 'A');
  path.at(1).add(record);
  path.turn(), path.turn();
  CHECK(path.shown[0].back().second["round"] == 8);
  CHECK_FALSE(path.shown[0].back().second.contains("sketch"));
  record["round"] = 9;
  record["cause"] = std::string(FigureExchange::entry_limit(2), 'A');
  path.at(1).add(record);
  path.turn(), path.turn();
  CHECK_FALSE(path.rounds(0, 1).contains(9));
}

TEST_CASE("Figures that break the protocol are named") {
  Path path({0});
  const auto why = [&](std::uint32_t asker, const std::string& entries) {
    const Status status = path.at(0).receive({0, 1}, {{asker, 7}, entries}, path.now);
    return status.ok() ? std::string() : status.error().message;
  };
  CHECK(why(4, "") == "it sent a wish of node 4 of 4");
  CHECK(why(0xFFFFFFFF, "") == "it sent a wish of node 4294967295 of 4");
  CHECK(why(1, entry(4, 1, "[]")) == "it sent figures of node 4 of 4");
  CHECK(why(1, std::string(15, '\0')) == "it sent figures that end within an entry");
  CHECK(why(1, entry(1, 1, "[]", 3)) == "it sent figures that end within an entry");
  CHECK(why(1, entry(1, 1, "", 0xFFFFFFFF)).ends_with("where 16384 are the limit"));
  CHECK(why(1, entry(2, 1, "[]")).empty());
}

TEST_CASE("What is no record of its node is not shown, and costs its forwarder nothing") {
  Path path({0});
  std::uint64_t version = 1;
  const auto send = [&](std::uint32_t node, const std::string& text) {
    return path.at(0).receive({0, 1}, {{1, 7}, entry(node, ++version, text)}, path.now).ok();
  };
  CHECK(send(2, "no JSON"));
  CHECK(send(2, "{}"));
  CHECK(send(2, "[1, {}]"));
  CHECK(send(2, std::string(8000, '[')));
  CHECK(send(2, text_of(Json::array({record_of(3, 4, 1)}))));            // of another node
  CHECK(send(2, text_of(Json::array({record_of(2, kRounds + 1, 1)}))));  // of no round of the run
  CHECK(send(2, text_of(Json::array({header_of(4, {2})}))));
  CHECK(send(0, text_of(Json::array({record_of(0, 4, 1)}))));  // of this process's own node
  Json many = Json::array();
  for (std::uint64_t round = 0; round <= FigureExchange::kMostRecords; ++round)
    many.push_back(record_of(2, round, 1));
  many.push_back(record_of(NodeReport()));
  CHECK(send(2, text_of(many)));
  CHECK(path.shown[0].empty());
  CHECK(path.reports[0].empty());
  CHECK(
      send(2, text_of(Json::array({record_of(2, 4, 1), record_of(2, 4, 2), record_of(2, 3, 1)}))));
  CHECK(path.rounds(0, 2) == std::set<std::uint64_t>{4});  // each round once, and none again
}

TEST_CASE("An old version does not replace a newer one, and invented figures fill bounded memory") {
  Path path({0});
  const std::string later = text_of(Json::array({record_of(2, 5, 1)}));
  CHECK(path.at(0).receive({0, 1}, {{1, 7}, entry(2, 9, later)}, path.now).ok());
  CHECK(path.at(0).receive({0, 1}, {{1, 7}, entry(2, 8, "[]")}, path.now).ok());
  CHECK(path.at(0).kept_bytes() == later.size());
  const std::string large(FigureExchange::entry_limit(kNodes), ' ');
  for (std::uint64_t version = 10; version < 100; ++version)
    for (std::uint32_t node = 0; node < kNodes; ++node)
      CHECK(path.at(0).receive({0, 1}, {{1, 7}, entry(node, version, large)}, path.now).ok());
  CHECK(path.at(0).kept_bytes() <= kNodes * FigureExchange::entry_limit(kNodes));
  CHECK(FigureExchange::entry_limit(1000) == 16384);
  CHECK(65535 * FigureExchange::entry_limit(65535) <= 64 << 20);
  CHECK(FigureExchange::entry_limit(65535) > 1000);  // a record or two
}

TEST_CASE("A node's figures go on after a restart, whose rounds begin anew elsewhere") {
  Path path({0}, 2);
  path.turn();
  path.at(1).add(record_of(1, 10, 1));
  path.turn(), path.turn();
  FigureExchangeOptions options;
  options.nodes = 2, options.rounds = kRounds, options.hosted = {1};
  path.processes[1] = std::make_unique<FigureExchange>(std::move(options));
  path.turn(), path.turn();
  path.at(1).add(record_of(1, 12, 1));
  path.turn(), path.turn();
  CHECK(path.rounds(0, 1) == std::set<std::uint64_t>{10, 12});
}

TEST_CASE("What does not fit into one frame follows in the next ones") {
  constexpr int nodes = 40;
  Path path({0}, nodes);
  for (int turn = 0; turn < nodes; ++turn) path.turn();
  for (int node = 0; node < nodes; ++node) {
    Json record = record_of(node, 1, 1);
    record["sketch"] = std::string(12000, 'A');
    path.at(node).add(record);
  }
  path.turn();
  path.at(0).add(record_of(0, 2, 1));
  path.turn();  // one of many in which nothing new may go out
  path.at(0).close_batches(path.clock);
  CHECK(path.rounds(0, 0).contains(2));
  for (int turn = 0; turn < 3 * nodes; ++turn) path.turn();
  for (int node = 0; node < nodes; ++node) CHECK(path.rounds(0, node).contains(1));
}
