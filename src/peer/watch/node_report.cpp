#include "peer/watch/node_report.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "peer/log/log_records.hpp"

namespace gossamer::peer {
namespace {

std::optional<int> node_in(const Json& value, int nodes) {
  if (!value.is_number_unsigned() ||
      value.get<std::uint64_t>() >= static_cast<std::uint64_t>(nodes))
    return {};
  return value.get<int>();
}

/// The elements of a list; none if it is missing or no list.
const Json& list_in(const Json& record, const char* field) {
  static const Json none = Json::array();
  const auto found = record.find(field);
  return found != record.end() && found->is_array() ? *found : none;
}

/// [neighbour, way, relay or null]
std::optional<std::pair<int, NodeReport::Route>> route_in(const Json& value, int nodes) {
  if (!value.is_array() || value.size() != 3 || !value[1].is_string()) return {};
  const auto neighbour = node_in(value[0], nodes);
  const auto way = value[1].get<std::string>();
  const bool relayed = way == "relayed";
  const auto relay = node_in(value[2], nodes);
  if (!neighbour || (!relayed && way != "reversed") || relayed != relay.has_value()) return {};
  return std::pair(*neighbour, NodeReport::Route{way, relay.value_or(-1)});
}

}  // namespace

Json record_of(const NodeReport& report) {
  Json record{{"record", "node"}};
  if (report.joined) record["joined"] = true;
  if (!report.sent_to.is_null()) record["sent_to"] = report.sent_to;
  Json suspects = Json::array(), routes = Json::array();
  for (const int neighbour : report.suspects)
    if (suspects.size() < NodeReport::kMostLinks) suspects.push_back(neighbour);
  for (const auto& [neighbour, route] : report.routes)
    if (routes.size() < NodeReport::kMostLinks)
      routes.push_back({neighbour, route.way, route.relay < 0 ? Json() : Json(route.relay)});
  if (!suspects.empty()) record["suspects"] = std::move(suspects);
  if (!routes.empty()) record["routes"] = std::move(routes);
  if (report.last_event > 0) record["last_event"] = report.last_event;
  if (!report.events.empty()) record["events"] = report.events;
  return record;
}

NodeReport report_of(const Json& record, int node, int nodes) {
  NodeReport report;
  if (record_type(record) != "node") return report;
  const auto field = [&record](const char* name) { return record.value(name, Json()); };
  report.joined = field("joined") == true;
  report.sent_to = field("sent_to");
  for (const Json& value : list_in(record, "suspects"))
    if (const auto neighbour = node_in(value, nodes);
        neighbour && report.suspects.size() < NodeReport::kMostLinks)
      report.suspects.insert(*neighbour);
  for (const Json& value : list_in(record, "routes"))
    if (auto route = route_in(value, nodes); route && report.routes.size() < NodeReport::kMostLinks)
      report.routes.insert(*std::move(route));
  if (const Json last = field("last_event"); last.is_number_unsigned())
    report.last_event = last.get<std::uint64_t>();
  const Json& events = list_in(record, "events");
  const bool sound =
      events.size() <= std::min<std::uint64_t>(NodeReport::kMostEvents, report.last_event) &&
      std::ranges::all_of(events, [node](const Json& event) {
        return record_type(event) == "membership" && !check_record(event, {node}, 0);
      });
  if (sound) report.events.assign(events.begin(), events.end());
  return report;
}

}  // namespace gossamer::peer
