#include "peer/watch/record_fields.hpp"

#include <fmt/format.h>

#include <algorithm>

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

std::uint64_t take_record(const Json& record, NodeFigures& node) {
  const NodeTotals before = node;
  const bool is_first = !node.recorded;
  node.recorded = true;
  node.round = count(record, "round");
  node.seconds = number(record, "seconds");
  if (record.contains("train_loss")) node.train_loss = number(record, "train_loss");
  node.test_loss = number(record, "test_loss");
  node.test_accuracy = number(record, "test_accuracy");
  node.bytes_sent = count(record, "bytes_sent");
  node.bytes_received = count(record, "bytes_received");
  node.train_seconds = number(record, "train_seconds");
  node.wait_seconds = number(record, "wait_seconds");
  if (record.contains("mix_seconds")) node.mix_seconds = number(record, "mix_seconds");
  const bool restarted =
      node.bytes_sent < before.bytes_sent || node.train_seconds < before.train_seconds;
  if (is_first || restarted) node.first = node;
  return restarted ? node.bytes_sent : node.bytes_sent - before.bytes_sent;
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
