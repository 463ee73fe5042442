// What a process says of a node to pages of other processes.
#include "peer/watch/node_report.hpp"

#include <doctest/doctest.h>

#include "tests/peer/watch/records.hpp"

using namespace gossamer::peer;
using namespace gossamer::peer::testing;

namespace {

constexpr int kReported = 2;

NodeReport read(const Json& record) { return report_of(record, kReported, 4); }

/// What is read of a field alone.
NodeReport read_field(const char* name, const Json& value) {
  return read({{"record", "node"}, {name, value}});
}

}  // namespace

TEST_CASE("A report is read as it was written, and an empty one has no fields") {
  CHECK(record_of(NodeReport()) == Json({{"record", "node"}}));
  CHECK(read(record_of(NodeReport())) == NodeReport());
  NodeReport report;
  report.joined = true;
  report.sent_to = Json::array({{1, 30}});
  report.suspects = {1, 3};
  report.routes = {{1, {"relayed", 0}}, {3, {"reversed", -1}}};
  report.last_event = ~std::uint64_t{0};
  report.events = {link_of(kReported, 1, true), link_of(kReported, 1, false)};
  CHECK(read(*parse_json(text_of(record_of(report)))) == report);
}

TEST_CASE("A report names a bounded number of neighbours") {
  NodeReport report;
  for (int neighbour = 0; neighbour < 1000; ++neighbour) {
    report.suspects.insert(neighbour);
    report.routes[neighbour] = {"reversed", -1};
  }
  const Json record = record_of(report);
  CHECK(record["suspects"].size() == NodeReport::kMostLinks);
  CHECK(record["routes"].size() == NodeReport::kMostLinks);
  Json more = record;
  for (int neighbour = 0; neighbour < 1000; ++neighbour) {
    more["suspects"].push_back(neighbour);
    more["routes"].push_back({neighbour, "reversed", nullptr});
  }
  const NodeReport read = report_of(*parse_json(text_of(more)), kReported, 1000);
  CHECK(read.suspects.size() == NodeReport::kMostLinks);
  CHECK(read.routes.size() == NodeReport::kMostLinks);
}

TEST_CASE("What a hostile process says instead of a report is left out") {
  const Json nonsense[] = {Json(), 3, -1, 1.5, "1", true, Json::array({1, "2"}), Json({{"3", 1}})};
  for (const Json& value : nonsense) {
    CHECK(read(value) == NodeReport());
    CHECK(read_field("routes", value) == NodeReport());
    CHECK(read_field("events", value) == NodeReport());
    if (!value.is_array()) CHECK(read_field("suspects", value) == NodeReport());
    if (value != true) CHECK(read_field("joined", value) == NodeReport());
    if (!value.is_number_unsigned()) CHECK(read_field("last_event", value) == NodeReport());
  }
  const auto read_list = [](const char* name, const char* list) {
    return read_field(name, *parse_json(list));
  };
  CHECK(
      read_list("suspects", R"([3, -1, 4, 1.5, "1", true, 18446744073709551615, [1]])").suspects ==
      std::set{3});
  CHECK(read_list("routes", R"([[1], [1, "direct", null], [1, "relayed", null], [1, "relayed", 4],
                                [4, "reversed", null], [1, "reversed", 0], [1, 2, null],
                                [1, "reversed", null, 0], [-1, "reversed", null]])")
            .routes.empty());
  const auto events = [](std::uint64_t last, const Json& list) {
    return read({{"record", "node"}, {"last_event", last}, {"events", list}}).events.size();
  };
  const Json event = *parse_json(text_of(link_of(kReported, 1, true)));
  CHECK(events(2, Json::array({event, event})) == 2);
  CHECK(events(1, Json::array({event, event})) == 0);  // more than there have been
  CHECK(events(2, Json::array({event, *parse_json(text_of(link_of(1, 2, true)))})) == 0);
  CHECK(events(2, Json::array({event, *parse_json(text_of(round_of(kReported, 2, 1)))})) == 0);
  CHECK(events(2, Json::array({Json({{"record", "membership"}})})) == 0);
  CHECK(events(99, Json(std::vector<Json>(NodeReport::kMostEvents + 1, event))) == 0);
}
