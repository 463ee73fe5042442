#include "peer/watch/record_fields.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "peer/watch/figures.hpp"

namespace gossamer::peer {

double number(const Json& record, const char* field) {
  const auto found = record.find(field);
  return found != record.end() && found->is_number() ? found->get<double>() : kNotKnown;
}

std::uint64_t count(const Json& record, const char* field) {
  const auto found = record.find(field);
  if (found == record.end() || !found->is_number_integer()) return 0;
  // As text, a number is unsigned; in a record that was just made, it may be an int.
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, found->get<std::int64_t>()));
}

std::string event_text(const Json& record) {
  const auto event = record["event"].get<std::string>();
  const auto neighbour = [&] { return count(record, "neighbour"); };
  if (event == "link_lost") {
    const std::string cause = record["cause"].is_string() ? record["cause"].get<std::string>() : "";
    return fmt::format("lost the link to peer {}{}{}", neighbour(), cause.empty() ? "" : ": ",
                       cause);
  }
  if (event == "link_restored")
    return fmt::format("exchanges rows with peer {} from round {} on", neighbour(),
                       count(record, "round"));
  if (event == "link_routed") {
    const auto route = record["route"].get<std::string>();
    return route == "relayed" ? fmt::format("is connected to peer {} through peer {}", neighbour(),
                                            count(record, "relay"))
           : route == "reversed" ? fmt::format("is connected to peer {} in reverse", neighbour())
                                 : fmt::format("is connected to peer {} directly", neighbour());
  }
  if (event == "reachable")
    return fmt::format("reaches {} peers", count(record, "reachable_peers"));
  if (event == "participants")
    return fmt::format("counts peers {} as participants from round {} on",
                       record["participants"].get<std::string>(), count(record, "round"));
  return fmt::format("joined the running network in round {}", count(record, "round"));
}

}  // namespace gossamer::peer
