// A view of a run: what nodes count since the start, by round and by node.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "peer/watch/run_view.hpp"
#include "peer/watch/view_json.hpp"
#include "tests/peer/watch/records.hpp"

using namespace gossamer::peer;
using namespace gossamer::peer::testing;

namespace {

const std::vector<int> kEveryPeer{0, 1, 2, 3};

}  // namespace

TEST_CASE("Bytes of a round are those of all nodes since the start, though some do not record it") {
  Json header = header_of(4, kEveryPeer);
  header["servers"] = 1;
  RunView view;
  REQUIRE(view.begin(header).ok());
  const auto add = [&](int peer, int round, int bytes) {
    Json record = round_of(peer, round, 1);
    record["bytes_sent"] = bytes;
    view.add(record, kEveryPeer);
  };
  const auto sums = [&] {
    std::vector<std::uint64_t> all;
    for (const RoundFigures& round : view.after(0).rounds) all.push_back(round.bytes_sent);
    return all;
  };
  using Sums = std::vector<std::uint64_t>;
  for (const int peer : kEveryPeer) add(peer, 2, 100);
  for (const int peer : {0, 1, 2}) add(peer, 4, 200);  // peer 3 has left, or lags behind
  add(0, 6, 300);
  CHECK(sums() == Sums{400, 700, 800});
  const std::uint64_t before = view.after(0).version;
  add(3, 4, 250);
  CHECK(sums() == Sums{400, 850, 950});
  const ViewSnapshot news = view.after(before);
  REQUIRE(news.rounds.size() == 2);  // the later round has another sum too
  CHECK(news.rounds.back().bytes_sent == 950);
  add(0, 8, 40);  // its process was started again, and counts from 0
  CHECK(sums() == Sums{400, 850, 950, 990});
  Json server = round_of(0, 8, 1);
  server["record"] = "server";
  server.erase("peer");
  server["server"] = 4;
  view.add(server, kEveryPeer);
  CHECK(sums().back() == 1790);
  server["round"] = 10;  // ahead of the peers
  server["bytes_sent"] = 1000;
  view.add(server, kEveryPeer);
  CHECK(sums().back() == 1790);
  add(1, 10, 201);
  CHECK(sums().back() == 1991);
}

TEST_CASE("Rounds that are no longer kept leave their bytes to the next one") {
  RunView view;
  REQUIRE(view.begin(header_of(4, kEveryPeer)).ok());
  constexpr std::uint64_t last = 5 * RoundHistory::kMostRounds + 1;
  for (std::uint64_t round = 0; round <= last; ++round)
    view.add(round_of(0, static_cast<int>(round), 1), kEveryPeer);
  const std::vector<RoundFigures> rounds = view.after(0).rounds;
  REQUIRE(rounds.size() <= RoundHistory::kMostRounds);
  for (const RoundFigures& round : rounds) CHECK(round.bytes_sent == 100 * round.round);
  CHECK(rounds.back().round == last);
}

TEST_CASE("Counters of Prometheus begin at 0 in each process, though the totals of a run go on") {
  RunView view;
  REQUIRE(view.begin(header_of(4, kEveryPeer)).ok());
  const auto has = [&](const std::string& line) {
    return metrics_text(view.after(0)).find("\ngossamer_" + line + "\n") != std::string::npos;
  };
  view.add(round_of(2, 40, 1), kEveryPeer);  // of a run that was resumed
  CHECK(has("bytes_sent_total{peer=\"2\"} 0"));
  Json record = round_of(2, 44, 1);
  record["wait_seconds"] = 1.2;
  view.add(record, kEveryPeer);
  CHECK(has("bytes_sent_total{peer=\"2\"} 400"));
  CHECK(has("bytes_received_total{peer=\"2\"} 360"));
  CHECK(has("wait_seconds_total{peer=\"2\"} 1"));
  CHECK(has("round{peer=\"2\"} 44"));
  record["bytes_sent"] = 5;  // the node's process was started again
  view.add(record, kEveryPeer);
  CHECK(has("bytes_sent_total{peer=\"2\"} 0"));
}

TEST_CASE("The first record of a node is that from which what it does in a round is counted") {
  RunView view;
  REQUIRE(view.begin(header_of(4, kEveryPeer)).ok());
  view.add(round_of(2, 40, 1), kEveryPeer);  // it joins then
  view.add(round_of(2, 42, 1), kEveryPeer);
  CHECK(node_of(view, 2).first.round == 40);
  CHECK(node_of(view, 2).first.bytes_sent == 4000);
  Json record = round_of(2, 60, 1);
  record["bytes_sent"] = 10;  // its process was started again
  view.add(record, kEveryPeer);
  view.add(round_of(2, 62, 1), kEveryPeer);
  const auto state = parse_json(state_json(view.after(0)));
  REQUIRE(state.ok());
  const Json& nodes = (*state)["nodes"];
  CHECK(nodes["first_round"] == Json({nullptr, nullptr, 60, nullptr}));
  CHECK(nodes["first_bytes_sent"][2] == 10);
  CHECK(nodes["first_seconds"][2] == 30);
  CHECK(nodes["first_train_seconds"][2] == 0.1);
}
