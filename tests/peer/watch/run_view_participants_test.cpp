// A view of a run in which not all peers take part in all rounds.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "peer/log/metrics.hpp"
#include "peer/watch/run_header.hpp"
#include "peer/watch/run_view.hpp"
#include "peer/watch/view_json.hpp"
#include "tests/peer/watch/records.hpp"

using namespace gossamer::peer;
using namespace gossamer::peer::testing;

namespace {

using Edges = std::vector<std::vector<int>>;

/// Of an open run of three peers, of which 0 and 1 begin.
Json open_header(const std::vector<int>& hosted) {
  Json header = header_of(3, hosted);
  header["config"]["run"]["participants"] = {"0,1"};
  header["config"]["run"]["open"] = true;
  header["topology"] = {{"edge_list", Edges{{0, 1}}}};
  return header;
}

Json participants(int peer, int round, const std::string& ids, const Edges& edges) {
  return {{"record", "membership"},
          {"round", round},
          {"peer", peer},
          {"seconds", round},
          {"event", "participants"},
          {"neighbour", nullptr},
          {"reachable_peers", nullptr},
          {"cause", nullptr},
          {"participants", ids},
          {"topology", {{"edge_list", edges}}}};
}

}  // namespace

TEST_CASE("The consensus distance of a round is of the peers that take part in it") {
  RunView view;
  Json header = header_of(3, {0, 1, 2});
  header["config"]["run"]["participants"] = {"0,2", "5: 0-2"};
  REQUIRE(view.begin(header).ok());
  const auto add = [&](int peer, int round, double value) {
    Json record = round_of(peer, round, 1);
    record["sketch"] = encode_sketch(std::vector<double>{value, 0});
    view.add(record, {0, 1, 2});
  };
  const auto distance_of = [&](std::size_t k) { return view.after(0).rounds.at(k); };
  add(1, 4, 9);  // of a peer that takes no part
  add(0, 4, 3), add(2, 4, -3);
  CHECK(distance_of(0).consensus_distance == doctest::Approx(3));
  CHECK(node_of(view, 2).distance == doctest::Approx(3));
  CHECK(std::isnan(node_of(view, 1).distance));
  add(0, 6, 1), add(2, 6, 1);
  CHECK(std::isnan(distance_of(1).consensus_distance));  // peer 1 is still to come
  add(1, 6, 1);
  CHECK(distance_of(1).consensus_distance == doctest::Approx(0));
}

TEST_CASE("A peer that has left a planned run stays absent when its process finishes") {
  RunView view;
  Json header = header_of(3, {0, 1, 2});
  header["config"]["run"]["participants"] = {"0-2", "5: 0,1"};
  REQUIRE(view.begin(header).ok());
  for (const int round : {4, 6})
    for (const int peer : {0, 1}) view.add(round_of(peer, round, 1), {0, 1, 2});
  view.add(end_of("finished"), {0, 1, 2});
  CHECK(node_of(view, 2).state == NodeStatus::absent);
  CHECK(node_of(view, 0).state == NodeStatus::finished);
}

TEST_CASE("A round says how many honest peers take part in it, of those whose records are here") {
  const auto due = [](RunViewOptions options) {
    RunView view(std::move(options));
    Json header = header_of(5, {0, 1});
    header["config"]["run"]["participants"] = {"0,2", "5: 0-4"};
    header["config"]["attack"]["peers"] = {4};
    REQUIRE(view.begin(header).ok());
    view.add(round_of(0, 4, 1), {0, 1});
    view.add(round_of(0, 6, 1), {0, 1});
    const ViewSnapshot all = view.after(0);
    return std::vector<int>{all.rounds.at(0).due, all.rounds.at(1).due};
  };
  CHECK(due({}) == std::vector<int>{2, 4});
  CHECK(due({.served_by = std::vector<int>{0, 1}}) == std::vector<int>{1, 2});
  CHECK(due({.served_by = std::vector<int>{0, 1}, .hears_others = true}) == std::vector<int>{2, 4});
}

TEST_CASE("Participants in the header of a hostile log are ignored where they are not sound") {
  for (const Json& hostile : {Json(7), Json("0-3"), Json::array({1, 2}), Json::array({"0-9"}),
                              Json::array({"x"}), Json(std::vector<std::string>(4'000'000, "0"))}) {
    Json header = header_of(3, {0});
    header["config"]["run"]["participants"] = hostile;
    CHECK(participants_of(header, 3).are_all());
  }
}

TEST_CASE("Peers that take no part are absent, until a change lets them") {
  RunView view;
  Json header = header_of(3, {0, 1, 2});
  header["config"]["run"]["participants"] = {"0,2", "5: 0,1"};
  REQUIRE(view.begin(header).ok());
  CHECK(node_of(view, 1).state == NodeStatus::absent);
  view.add(round_of(0, 4, 1), {0, 1, 2});
  CHECK(node_of(view, 1).state == NodeStatus::absent);
  CHECK(node_of(view, 2).state == NodeStatus::unknown);
  view.add(round_of(0, 6, 1), {0, 1, 2});
  CHECK(node_of(view, 1).state == NodeStatus::unknown);
  CHECK(node_of(view, 2).state == NodeStatus::absent);
}

TEST_CASE("Changes of an open run come with the log, and with the edges of the graph") {
  RunView view;
  REQUIRE(view.begin(open_header({0})).ok());
  CHECK(node_of(view, 2).state == NodeStatus::absent);
  view.add(round_of(0, 8, 1), {0});
  const std::uint64_t before = view.after(0).version;
  view.add(participants(0, 9, "0-2", {{0, 1}, {0, 2}}), {0});
  CHECK(node_of(view, 2).state == NodeStatus::unknown);
  const ViewSnapshot snapshot = view.after(before);
  REQUIRE(snapshot.run != nullptr);  // the page draws the graph anew
  CHECK(snapshot.run->at("topology").at("edge_list") == Json(Edges{{0, 1}, {0, 2}}));
  CHECK(snapshot.events.back().text == "counts peers 0-2 as participants from round 9 on");

  view.add(link_of(0, 2, true), {0}), view.add(link_of(1, 2, true), {0});
  REQUIRE(view.after(0).links.size() == 1);  // only that is on the graph
  CHECK(view.after(0).links.front().first == std::pair(0, 2));
  REQUIRE(view.round(8).has_value());
  CHECK(view.round(8)->lost_links == std::vector{std::pair(0, 2)});

  // The other processes record it too, one that joins of the round in which it does.
  const std::uint64_t known = view.after(0).version;
  view.add(participants(0, 9, "0-2", {{0, 1}, {0, 2}}), {0});
  view.add(participants(0, 11, "0-2", {{0, 1}, {0, 2}}), {0});
  CHECK(view.after(known).run == nullptr);

  // Another process has recorded an earlier change, and the newest one too.
  REQUIRE(view.begin(open_header({1})).ok());
  view.add(participants(1, 5, "0", {}), {1});
  view.add(participants(1, 9, "0-2", {{0, 1}, {0, 2}}), {1});
  CHECK(view.after(0).run->at("topology").at("edge_list").size() == 2);
  view.add(participants(0, 12, "0,2", {{0, 2}}), {0});
  CHECK(node_of(view, 1).state == NodeStatus::absent);

  view.add(end_of("left"), {1});
  CHECK(node_of(view, 1).state == NodeStatus::absent);
}

TEST_CASE("The properties of the topology are those of the newest participants") {
  RunView view;
  Json header = open_header({0});
  header["topology"]["spectral_gap"] = 1;
  header["topology"]["symmetric"] = true;
  header["topology"]["lattice"] = {2};
  REQUIRE(view.begin(header).ok());
  Json record = participants(0, 9, "0-2", {{0, 1}, {1, 2}, {2, 0}});
  record["topology"]["spectral_gap"] = 0.25;
  record["topology"]["symmetric"] = false;
  view.add(record, {0});
  const auto run = [&] { return parse_json(state_json(view.after(0))).value()["run"]; };
  CHECK(run()["spectral_gap"] == 0.25);
  CHECK(run()["symmetric"] == false);
  CHECK(run()["lattice"].is_null());
  CHECK(run()["topology"] == "ring");
  record["round"] = 12;
  record["participants"] = "0,1";
  record["topology"]["lattice"] = {"x"};
  view.add(record, {0});
  CHECK(run()["lattice"].is_null());
  record["round"] = 15;
  record["participants"] = "0-2";
  record["topology"]["lattice"] = {3};
  view.add(record, {0});
  CHECK(run()["lattice"] == Json({3}));
}

TEST_CASE("Participants of an open run that are not sound are ignored") {
  RunView view;
  REQUIRE(view.begin(open_header({0})).ok());
  for (const char* ids : {"0-3", "70000", "x", "2-1"}) view.add(participants(0, 9, ids, {}), {0});
  CHECK(node_of(view, 2).state == NodeStatus::absent);
  view.add(participants(0, 9, "0-2", {{0, 7}, {0, -1}}), {0});
  CHECK(view.after(0).run->at("topology").at("edge_list").is_null());
  RunView planned;
  REQUIRE(planned.begin(header_of(3, {0})).ok());
  planned.add(participants(0, 9, "0", {}), {0});
  CHECK(node_of(planned, 2).state == NodeStatus::unknown);
}
