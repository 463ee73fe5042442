// A view of a run: what it knows of links.
#include <doctest/doctest.h>

#include "peer/watch/run_view.hpp"
#include "peer/watch/view_json.hpp"
#include "tests/peer/watch/records.hpp"

using namespace gossamer::peer;
using namespace gossamer::peer::testing;

namespace {

const std::vector<int> kAllOfFour{0, 1, 2, 3};

}  // namespace

TEST_CASE("A round that is shown again has the links that were lost then") {
  RunView view;
  REQUIRE(view.begin(header_of(4, kAllOfFour)).ok());
  for (const int round : {2, 4, 6, 8})
    for (const int peer : kAllOfFour) view.add(round_of(peer, round, 1), kAllOfFour);
  Json lost = link_of(1, 2, true), other = link_of(2, 1, true), back = link_of(1, 2, false);
  lost["round"] = 3, other["round"] = 5, back["round"] = 8;
  for (const Json& record : {lost, other, back}) view.add(record, kAllOfFour);
  using Links = std::vector<std::pair<int, int>>;
  CHECK(view.round(2)->lost_links.empty());
  CHECK(view.round(4)->lost_links == Links{{1, 2}});
  CHECK(view.round(8)->lost_links == Links{{1, 2}});  // the other end has it lost
  CHECK(round_json(4, *view.round(4)).find("\"lost_links\":[[1,2]]") != std::string::npos);
  for (std::size_t k = 0; k < LinkHistory::kMostChanges; ++k) view.add(lost, kAllOfFour);
  CHECK(view.round(4)->lost_links == Links{{1, 2}});
}

TEST_CASE(
    "Links have the bytes that both ends have sent, and what is no link of the run has none") {
  RunView view;
  REQUIRE(view.begin(header_of(4, kAllOfFour)).ok());
  const auto add = [&](int peer, const Json& sent) { view.set_traffic(peer, sent); };
  add(0, Json::array({{1, 30}, {3, 40}}));
  add(1, Json::array({{0, 5}}));
  const auto bytes = [&](int a, int b) {
    for (const auto& [ends, link] : view.after(0).links)
      if (ends == std::pair(a, b)) return link.sent_by_lower + link.sent_by_higher;
    return std::uint64_t{0};
  };
  CHECK(bytes(0, 1) == 35);
  CHECK(bytes(0, 3) == 40);
  for (const Json& hostile :
       {Json(7), Json("x"), Json::array({7}), Json::array({{1}}), Json::array({{2, 9}}),
        Json::array({{-1, 9}}), Json::array({{4, 9}}), Json::array({{0, 9}}),
        Json::array({{1, -9}}), Json::array({{1, 1.5}}), Json::array({{1, 9, 9}}),
        Json::array({{std::uint64_t{1} << 63, 9}}), Json::array({{std::uint64_t{1} << 32, 9}})})
    add(0, hostile);
  add(77, Json::array({{0, 9}}));
  CHECK(view.after(0).links.size() == 2);
  CHECK(bytes(0, 1) == 35);
}

TEST_CASE(
    "A link is suspected until it is heard again or lost, and other processes tell of losses") {
  RunView view({.served_by = std::vector<int>{0}});
  REQUIRE(view.begin(header_of(4, {0})).ok());
  const auto link = [&](int a, int b) {
    for (const auto& [ends, figures] : view.after(0).links)
      if (ends == std::pair(a, b)) return figures;
    return LinkFigures();
  };
  view.set_suspected(0, 3, true);
  CHECK(link(0, 3).suspected);
  CHECK(state_json(view.after(0)).find("\"suspected\"") != std::string::npos);
  view.set_suspected(0, 3, false);
  CHECK_FALSE(link(0, 3).suspected);
  view.set_suspected(0, 2, true);  // no link
  view.set_suspected(2, 77, true);
  CHECK(view.after(0).links.size() == 1);
  view.set_suspected(1, 2, true);
  CHECK(link(1, 2).suspected);
  view.set_suspected(0, 3, true);
  view.add(link_of(0, 3, true), {0});
  CHECK(link(0, 3).lost);
  CHECK_FALSE(link(0, 3).suspected);
  view.set_other_link(2, 1, true);
  CHECK(link(1, 2).lost);
  view.set_other_link(2, 1, false);
  CHECK_FALSE(link(1, 2).lost);
  view.set_other_link(2, 4, true);  // a server, or a node that the run does not have
  CHECK(view.after(0).links.size() == 2);
}

TEST_CASE("Reports of other processes show how their links go, who joined, and each event once") {
  RunView view({.served_by = std::vector<int>{0}, .hears_others = true});
  REQUIRE(view.begin(header_of(4, {0})).ok());
  view.add(round_of(2, 2, 1), {2});
  const auto lines = [&] {
    std::vector<std::string> texts;
    for (const EventLine& event : view.after(0).events) texts.push_back(event.text);
    return texts;
  };
  const auto route = [&](int a, int b) {
    for (const auto& [ends, link] : view.after(0).links)
      if (ends == std::pair(a, b)) return link.route + std::to_string(link.relay);
    return std::string();
  };
  NodeReport first, second;
  first.joined = true;
  first.routes = {{1, {"relayed", 0}}, {0, {"reversed", -1}}, {77, {"reversed", -1}}};
  first.last_event = 5;
  first.events = {link_of(2, 1, true, "one"), link_of(2, 1, false)};
  view.add_report(2, {}, first);
  CHECK(node_of(view, 2).state == NodeStatus::joined);
  CHECK(route(1, 2) == "relayed0");
  CHECK(view.after(0).links.size() == 1);  // 0 and 2 are no neighbours
  CHECK(lines() == std::vector<std::string>{"lost the link to peer 1: one",
                                            "exchanges rows with peer 1 from round 4 on"});
  const std::uint64_t version = view.after(0).version;
  view.add_report(2, first, first);
  CHECK(view.after(version).links.empty());  // no news
  second.last_event = 6;
  second.events = {link_of(2, 1, false), link_of(2, 3, true, "two")};
  view.add_report(2, first, second);
  CHECK(route(1, 2) == "direct-1");
  CHECK(lines().size() == 3);
  CHECK(lines().back() == "lost the link to peer 3: two");
  CHECK_FALSE(view.round(2)->lost_links.size() > 0);  // losses come another way
  // A process that was started again has reported a later event; a hostile one says anything.
  view.add_report(2, second, {.last_event = 3, .events = {link_of(2, 1, true)}});
  view.add_report(4, {}, second);  // no node of the run
  CHECK(lines().size() == 3);
  view.add_report(2, second, {.last_event = ~std::uint64_t{0}, .events = {link_of(2, 1, true)}});
  CHECK(lines().size() == 4);
}
