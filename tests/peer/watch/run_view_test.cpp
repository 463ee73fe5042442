// A view of a run: what is folded from records, and what changed after a version.
#include "peer/watch/run_view.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "peer/log/metrics.hpp"
#include "peer/watch/view_json.hpp"
#include "tests/peer/watch/records.hpp"

using namespace gossamer::peer;
using namespace gossamer::peer::testing;

namespace {

const std::vector<int> kAll{0, 1, 2, 3};

}  // namespace

TEST_CASE("Rounds have mean, least and largest value over the peers, and sums of bytes") {
  RunView view;
  REQUIRE(view.begin(header_of(4, kAll)).ok());
  for (const int peer : kAll) view.add(round_of(peer, 2, 1.0 + peer), kAll);
  view.add(network_of(2, 5.0, {1, 2, 3, 4}), kAll);
  const ViewSnapshot all = view.after(0);
  REQUIRE(all.rounds.size() == 1);
  const RoundFigures& round = all.rounds.front();
  CHECK(round.nodes == 4);
  CHECK(round.train_loss.mean() == 2.5);
  CHECK(round.train_loss.least == 1);
  CHECK(round.train_loss.largest == 4);
  CHECK(round.bytes_sent == 800);
  CHECK(round.consensus_distance == 5);
  CHECK(round.averaged_loss == 0.25);
  CHECK(std::isnan(round.averaged_accuracy));
  CHECK(node_of(view, 3).distance == 4);
  CHECK(node_of(view, 3).state == NodeStatus::training);
  const auto figures = view.round(2);
  REQUIRE(figures);
  CHECK(figures->peers.distance == std::vector<float>{1, 2, 3, 4});
  CHECK_FALSE(view.round(4));
}

TEST_CASE("Only what changed after a version is told, and all of it after a reset") {
  RunView view;
  REQUIRE(view.begin(header_of(4, kAll)).ok());
  for (const int peer : kAll) view.add(round_of(peer, 0, 1), kAll);
  const std::uint64_t before = view.after(0).version;
  view.add(round_of(2, 2, 0.5), kAll);
  const ViewSnapshot news = view.after(before);
  CHECK(news.run == nullptr);
  REQUIRE(news.nodes.size() == 1);
  CHECK(news.nodes.front().first == 2);
  REQUIRE(news.rounds.size() == 1);
  CHECK(news.rounds.front().round == 2);
  CHECK(news.kept_rounds == std::vector<std::uint64_t>{0, 2});
  CHECK_FALSE(view.after(news.version).kept_rounds);
  CHECK(view.after(news.version).nodes.empty());
  CHECK(view.after(news.version + 1000).run != nullptr);  // of a view with another clock
  RunView later;                                          // of a process that was started again
  REQUIRE(later.begin(header_of(4, kAll)).ok());
  CHECK(later.after(before).run != nullptr);
  view.reset();
  REQUIRE(view.begin(header_of(4, kAll)).ok());
  CHECK(view.after(news.version).run != nullptr);
  CHECK(view.after(news.version).rounds.empty());
}

TEST_CASE("Who has asked before the first header, or during a reset, is told all of the run") {
  RunView view;
  const std::uint64_t early = view.after(0).version;
  REQUIRE(view.begin(header_of(4, kAll)).ok());
  CHECK(view.after(early).run != nullptr);
  const std::uint64_t known = view.after(0).version;
  CHECK(view.after(known).run == nullptr);
  view.reset();
  const std::uint64_t between = view.after(known).version;
  REQUIRE(view.begin(header_of(4, kAll, "another")).ok());
  CHECK(view.after(between).run != nullptr);
  CHECK(view.after(known).run != nullptr);
}

TEST_CASE("A log that does not fit the others is not added") {
  RunView view;
  REQUIRE(view.begin(header_of(4, {0, 1})).ok());
  const std::uint64_t before = view.after(0).version;
  CHECK(view.begin(header_of(4, {2, 3}, "another")).error().message == "is the log of another run");
  CHECK(view.begin(header_of(1000, {999})).error().message == "is the log of another run");
  CHECK(view.begin(header_of(4, {1, 2})).error().message ==
        "is the log of a process of which there is another log");
  CHECK(view.after(0).version == before);
  CHECK(view.begin(header_of(4, {2, 3})).ok());
}

TEST_CASE(
    "Events are in the order of their time, whatever the order of the logs, and the newest stay") {
  RunView view;
  for (const int peer : kAll) REQUIRE(view.begin(header_of(4, {peer})).ok());
  for (const int peer : {0, 2}) {
    for (int k = 0; k < 150; ++k) {
      Json record = link_of(peer, peer + 1, k % 2 == 0);
      record["seconds"] = 10.0 * k + peer;
      view.add(record, {peer});
    }
  }
  const auto events = view.after(0).events;
  CHECK(events.size() == EventHistory::kMost);
  CHECK(std::ranges::is_sorted(events, {}, &EventLine::seconds));
  CHECK(events.back().seconds == 1492);
}

TEST_CASE("The end of a run is that of the process that ended last, before it one that failed") {
  const auto end_at = [](const std::string& reason, double seconds) {
    Json end = end_of(reason);
    end["seconds"] = seconds;
    return end;
  };
  RunView view;
  for (const int peer : kAll) REQUIRE(view.begin(header_of(4, {peer})).ok());
  view.add(end_at("finished", 1), {0});
  view.add(end_at("finished", 3), {1});
  view.add(end_at("finished", 2), {2});
  RunView failed;
  for (const int peer : kAll) REQUIRE(failed.begin(header_of(4, {peer})).ok());
  for (const int peer : {0, 1, 2})
    failed.add(end_at(peer == 1 ? "diverged" : "finished", 5), {peer});
  view.add(end_at("finished", 1), {3});
  failed.add(end_at("finished", 9), {3});
  CHECK(view.after(0).end["seconds"] == 3);
  CHECK(failed.after(0).end["reason"] == "diverged");
}

TEST_CASE("Of a peer without a record nothing but its state is told") {
  RunView view({.served_by = std::vector<int>{0}});
  REQUIRE(view.begin(header_of(4, {0})).ok());
  view.add(round_of(0, 2, 1), {0});
  view.add(link_of(0, 1, true), {0});
  const auto state = parse_json(state_json(view.after(0)));
  REQUIRE(state.ok());
  CHECK((*state)["nodes"]["state"][1] == "lost");
  for (const char* field : {"round", "bytes_sent", "train_seconds", "train_loss"}) {
    CAPTURE(field);
    CHECK((*state)["nodes"][field][1].is_null());
  }
  const std::string metrics = metrics_text(view.after(0));
  CHECK(metrics.find("gossamer_peer_lost{peer=\"1\"} 1\n") != metrics.npos);
  CHECK(metrics.find("gossamer_round{peer=\"1\"}") == metrics.npos);
}

TEST_CASE("What a log may have in place of lists is told as null") {
  Json header = header_of(4, kAll);
  header["config"]["attack"]["peers"] = 5;
  header["topology"]["edge_list"] = Json::object();
  header["topology"]["lattice"] = {"x"};
  RunView view;
  REQUIRE(view.begin(header).ok());
  const auto state = parse_json(state_json(view.after(0)));
  REQUIRE(state.ok());
  for (const char* field : {"hostile", "edges", "lattice"}) {
    CAPTURE(field);
    CHECK((*state)["run"][field].is_null());
  }
}

TEST_CASE("Sketches of rounds that are never whole take bounded memory") {
  RoundHistory history(100, 1);
  const std::vector<double> sketch(1024);
  std::size_t held = 0;
  for (std::uint64_t round = 0; round < 1000; ++round)
    for (int peer = 0; peer < 99; ++peer) history.add_sketch(*history.at(round), peer, sketch);
  for (const auto& [unused, kept] : history.kept())
    for (const auto& [peer, values] : kept.sketches) held += values.size();
  CHECK(held <= RoundHistory::kMostSketchValues);
  CHECK(held > RoundHistory::kMostSketchValues / 2);
  CHECK(history.kept().rbegin()->second.sketches.size() == 99);
}

TEST_CASE("A peer is lost while every neighbour that is heard of has lost it") {
  RunView view;
  for (const int peer : kAll) REQUIRE(view.begin(header_of(4, {peer})).ok());
  for (const int peer : kAll) view.add(round_of(peer, 2, 1), {peer});
  view.add(link_of(1, 2, true, "it sent nothing for 2 s"), {1});
  CHECK(node_of(view, 2).state == NodeStatus::training);
  view.add(link_of(3, 2, true), {3});
  CHECK(node_of(view, 2).state == NodeStatus::lost);
  const ViewSnapshot lost = view.after(0);
  REQUIRE(lost.links.size() == 2);
  CHECK(lost.links.front().first == std::pair(1, 2));
  CHECK(lost.links.front().second.lost);
  CHECK(lost.links.front().second.cause == "it sent nothing for 2 s");
  CHECK(lost.events.front().text == "lost the link to peer 2: it sent nothing for 2 s");
  view.add(link_of(1, 2, false), {1});
  CHECK(node_of(view, 2).state == NodeStatus::training);
  CHECK_FALSE(view.after(0).links.front().second.lost);
}

TEST_CASE("A link is lost as long as one of its ends has lost it") {
  RunView view;
  REQUIRE(view.begin(header_of(4, kAll)).ok());
  view.add(link_of(0, 1, true, "first"), kAll);
  view.add(link_of(1, 0, true, "second"), kAll);
  view.add(link_of(0, 1, false), kAll);
  CHECK(view.after(0).links.front().second.lost);
  view.add(link_of(1, 0, false), kAll);
  CHECK_FALSE(view.after(0).links.front().second.lost);
}

TEST_CASE("A run has ended when all of its processes have, and finished only if all of them did") {
  RunView view;
  REQUIRE(view.begin(header_of(4, {0, 1})).ok());
  REQUIRE(view.begin(header_of(4, {2, 3})).ok());
  view.add(end_of("lost_peer"), {0, 1});
  CHECK(view.after(0).end.is_null());
  CHECK(node_of(view, 1).state == NodeStatus::stopped);
  view.add(end_of("finished"), {2, 3});
  CHECK(node_of(view, 2).state == NodeStatus::finished);
  CHECK(view.after(0).end["reason"] == "lost_peer");
}

TEST_CASE("The distances of peers in several processes are estimated from their sketches") {
  RunView view;
  for (const int peer : kAll) REQUIRE(view.begin(header_of(4, {peer})).ok());
  for (const int peer : kAll) {
    Json record = round_of(peer, 2, 1);
    record["sketch"] = encode_sketch(std::vector<double>{peer == 0 ? 4.0 : 0.0, 0.0});
    view.add(record, {peer});
  }
  CHECK(node_of(view, 0).distance == 3);
  CHECK(node_of(view, 1).distance == 1);
  CHECK(view.after(0).rounds.front().consensus_distance == doctest::Approx(std::sqrt(3.0)));
}

TEST_CASE("The distances go on without a peer that is lost or was stopped, which then has none") {
  bool stopped = false;
  SUBCASE("lost") {}
  SUBCASE("stopped") { stopped = true; }
  RunView view;
  for (const int peer : kAll) REQUIRE(view.begin(header_of(4, {peer})).ok());
  const auto add = [&](int peer, int round, double value) {
    Json record = round_of(peer, round, 1);
    record["sketch"] = encode_sketch(std::vector<double>{value});
    view.add(record, {peer});
  };
  for (const int peer : kAll) add(peer, 2, peer);
  if (stopped) view.add(end_of("interrupted"), {2});
  for (const int neighbour : {1, 3})
    if (!stopped) view.add(link_of(neighbour, 2, true), {neighbour});
  REQUIRE(node_of(view, 2).state == (stopped ? NodeStatus::stopped : NodeStatus::lost));
  for (const int peer : {0, 1, 3}) add(peer, 4, peer == 3 ? 3 : 0);
  const auto distance = [&] { return view.after(0).rounds.back().consensus_distance; };
  CHECK(distance() == doctest::Approx(std::sqrt(2.0)));
  CHECK(node_of(view, 3).distance == 2);
  CHECK(node_of(view, 1).distance == 1);
  CHECK(std::isnan(node_of(view, 2).distance));
  add(2, 4, 100);  // it comes too late
  CHECK(distance() == doctest::Approx(std::sqrt(2.0)));
}

TEST_CASE("A peer whose log is ahead keeps the distance of the newest whole round") {
  RunView view;
  for (const int peer : kAll) REQUIRE(view.begin(header_of(4, {peer})).ok());
  for (const int peer : kAll)
    for (const int round : {2, 4}) {
      if (peer == 3 && round == 4) continue;
      Json record = round_of(peer, round, 1);
      record["sketch"] = encode_sketch(std::vector<double>{peer == 0 ? 4.0 : 0.0});
      view.add(record, {peer});
    }
  CHECK(node_of(view, 0).round == 4);
  CHECK(node_of(view, 0).distance == 3);
}

TEST_CASE("Damaged sketches change no figure") {
  RunView view;
  for (const int peer : kAll) REQUIRE(view.begin(header_of(4, {peer})).ok());
  const std::vector<std::string> sketches{encode_sketch(std::vector<double>{1, 2}), "!!!",
                                          encode_sketch(std::vector<double>{1}), ""};
  for (const int peer : kAll) {
    Json record = round_of(peer, 2, 1);
    record["sketch"] = sketches[static_cast<std::size_t>(peer)];
    view.add(record, {peer});
  }
  CHECK(std::isnan(view.after(0).rounds.front().consensus_distance));
}

TEST_CASE("A long run keeps rounds at even distances, and the newest one") {
  RoundHistory history(4, 2);
  constexpr std::uint64_t last = 2 * 5 * RoundHistory::kMostRounds + 1;
  for (std::uint64_t round = 0; round <= last; round += 2) REQUIRE(history.at(round) != nullptr);
  REQUIRE(history.at(last) != nullptr);
  CHECK(history.kept().size() <= RoundHistory::kMostRounds);
  CHECK(history.kept().size() > RoundHistory::kMostRounds / 2);
  CHECK(history.kept().contains(last));
  CHECK(history.kept().contains(0));
  CHECK(history.at(2) == nullptr);   // thinned out
  CHECK(history.at(16) != nullptr);  // every 8th record is kept
}

TEST_CASE("A large network keeps fewer rounds") {
  RoundHistory history(65535, 1);
  for (std::uint64_t round = 0; round < 100; ++round) REQUIRE(history.at(round) != nullptr);
  CHECK(history.kept().size() <= 64);
}

TEST_CASE("Hostile peers do not count in a round's figures") {
  Json header = header_of(4, kAll);
  header["config"]["attack"]["peers"] = {3};
  RunView view;
  REQUIRE(view.begin(header).ok());
  for (const int peer : kAll) view.add(round_of(peer, 2, peer == 3 ? 1e9 : 1), kAll);
  view.add(network_of(2, 5.0, {1, 2, 3}), kAll);
  CHECK(view.after(0).rounds.front().train_loss.largest == 1);
  CHECK(view.after(0).rounds.front().nodes == 3);
  CHECK(std::isnan(node_of(view, 3).distance));
}

TEST_CASE("Headers and records without the optional fields, or beyond the network, are taken") {
  Json header = header_of(4, kAll);
  header["topology"]["edge_list"] = {{0, 9}, {0, 1}};
  header["config"] = {{"algorithm", {{"kind", "dpsgd"}}}};
  RunView view;
  REQUIRE(view.begin(header).ok());
  view.add(round_of(0, 2, 1), kAll);
  view.add(link_of(0, 70, true), kAll);
  CHECK(view.after(0).links.empty());
  CHECK_FALSE(state_json(view.after(0)).empty());
  header.erase("topology");
  RunView without;
  REQUIRE(without.begin(header).ok());
  without.add(link_of(0, 1, true), kAll);
  const auto state = parse_json(state_json(without.after(0)));
  REQUIRE(state.ok());
  CHECK((*state)["run"]["edges"].is_null());
}

TEST_CASE("The state is JSON, with null for what is not known and texts escaped") {
  RunView view;
  REQUIRE(view.begin(header_of(4, kAll)).ok());
  view.add(round_of(0, 2, std::numeric_limits<double>::infinity()), kAll);
  view.add(link_of(0, 1, true, "\"<b>\n\x01\xff"), kAll);
  const auto state = parse_json(state_json(view.after(0)));
  REQUIRE(state.ok());
  CHECK((*state)["nodes"]["id"] == Json({0, 1, 2, 3}));
  CHECK((*state)["nodes"]["state"] == Json({"training", "lost", "unknown", "unknown"}));
  CHECK((*state)["nodes"]["distance"][0].is_null());
  CHECK((*state)["rounds"]["train_loss"][0].is_null());
  CHECK((*state)["links"]["cause"][0] == "\"<b>\n\x01\xef\xbf\xbd");
  CHECK((*state)["run"]["topology"] == "ring");
  CHECK((*state)["run"]["rounds"] == 100);
  CHECK((*state)["end"].is_null());
}

TEST_CASE("Prometheus' text has a sample of each peer that is heard of, and escaped labels") {
  Json header = header_of(4, kAll);
  header["run_id"] = "a\"b\\c\nd";
  RunView view;
  REQUIRE(view.begin(header).ok());
  view.add(round_of(2, 4, 0.5), kAll);
  const std::string text = metrics_text(view.after(0));
  CHECK(text.find("gossamer_train_loss{peer=\"2\"} 0.5\n") != text.npos);
  CHECK(text.find("gossamer_round{peer=\"2\"} 4\n") != text.npos);
  CHECK(text.find("peer=\"1\"") == text.npos);
  CHECK(text.find("gossamer_test_accuracy{") == text.npos);
  CHECK(text.find("run_id=\"a\\\"b\\\\c\\nd\"") != text.npos);
}

TEST_CASE("Sketches of other processes give distances only where they are heard") {
  for (const bool hears : {false, true}) {
    RunView view({.served_by = std::vector<int>{0}, .hears_others = hears});
    REQUIRE(view.begin(header_of(2, {0})).ok());
    for (const int peer : {0, 1}) {
      Json record = round_of(peer, 2, 1);
      record["sketch"] = encode_sketch(std::vector<double>{peer == 0 ? 3.0 : -3.0, 0});
      view.add(record, {peer});
    }
    const double distance = view.after(0).rounds.front().consensus_distance;
    if (hears) CHECK(distance == doctest::Approx(3));
    else CHECK(std::isnan(distance));
  }
}
