#include "peer/watch/view_json.hpp"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <optional>
#include <string_view>

#include "peer/log/part_logs.hpp"

namespace gossamer::peer {
namespace {

// Ten times a second, thousands of numbers become text: they are formatted into one string, in
// place of a tree of JSON values.

void append(std::string& text, double value) {
  if (std::isfinite(value)) fmt::format_to(std::back_inserter(text), "{:.7g}", value);
  else text += "null";
}
void append(std::string& text, float value) { append(text, static_cast<double>(value)); }
void append(std::string& text, std::uint64_t value) {
  fmt::format_to(std::back_inserter(text), "{}", value);
}
void append(std::string& text, int value) { fmt::format_to(std::back_inserter(text), "{}", value); }
template <class Value>
void append(std::string& text, const std::optional<Value>& value) {
  if (value) append(text, *value);
  else text += "null";
}
void append(std::string& text, const std::string& value) { text += text_of(Json(value)); }
void append(std::string& text, std::string_view value) { append(text, std::string(value)); }

std::string_view name_of(NodeStatus state) {
  switch (state) {
    case NodeStatus::unknown: return "unknown";
    case NodeStatus::absent: return "absent";
    case NodeStatus::training: return "training";
    case NodeStatus::joined: return "joined";
    case NodeStatus::lost: return "lost";
    case NodeStatus::finished: return "finished";
    case NodeStatus::stopped: return "stopped";
  }
  return "unknown";
}

/// Appends `"name": [value of each item]`.
template <class Items, class Value>
void column(std::string& text, const char* name, const Items& items, Value value) {
  if (text.back() != '{') text += ',';
  fmt::format_to(std::back_inserter(text), "\"{}\":[", name);
  bool first = true;
  for (const auto& item : items) {
    if (!first) text += ',';
    first = false;
    append(text, value(item));
  }
  text += ']';
}

using Node = std::pair<int, NodeFigures>;

void append_nodes(std::string& text, const std::vector<Node>& nodes) {
  const auto field = [&](const char* name, auto member) {
    using Value = std::decay_t<decltype(nodes.front().second.*member)>;
    column(text, name, nodes, [member](const Node& node) {
      return node.second.recorded ? std::optional<Value>(node.second.*member) : std::nullopt;
    });
  };
  column(text, "id", nodes, [](const Node& node) { return node.first; });
  field("round", &NodeFigures::round);
  field("seconds", &NodeFigures::seconds);
  field("train_loss", &NodeFigures::train_loss);
  field("test_loss", &NodeFigures::test_loss);
  field("test_accuracy", &NodeFigures::test_accuracy);
  field("distance", &NodeFigures::distance);
  field("bytes_sent", &NodeFigures::bytes_sent);
  field("bytes_received", &NodeFigures::bytes_received);
  field("train_seconds", &NodeFigures::train_seconds);
  field("wait_seconds", &NodeFigures::wait_seconds);
  field("mix_seconds", &NodeFigures::mix_seconds);
  const auto first = [&](const char* name, auto member) {
    using Value = std::decay_t<decltype(nodes.front().second.first.*member)>;
    column(text, name, nodes, [member](const Node& node) {
      return node.second.recorded ? std::optional<Value>(node.second.first.*member) : std::nullopt;
    });
  };
  first("first_round", &NodeTotals::round);
  first("first_seconds", &NodeTotals::seconds);
  first("first_bytes_sent", &NodeTotals::bytes_sent);
  first("first_train_seconds", &NodeTotals::train_seconds);
  column(text, "state", nodes, [](const Node& node) { return name_of(node.second.state); });
}

void append_rounds(std::string& text, const std::vector<RoundFigures>& rounds) {
  const auto field = [&](const char* name, auto member) {
    column(text, name, rounds, [member](const RoundFigures& round) { return round.*member; });
  };
  const auto spread = [&](const std::string& name, Spread RoundFigures::* member) {
    column(text, name.c_str(), rounds,
           [member](const RoundFigures& round) { return (round.*member).mean(); });
    column(text, (name + "_min").c_str(), rounds,
           [member](const RoundFigures& round) { return (round.*member).least; });
    column(text, (name + "_max").c_str(), rounds,
           [member](const RoundFigures& round) { return (round.*member).largest; });
  };
  field("round", &RoundFigures::round);
  field("nodes", &RoundFigures::nodes);
  field("due", &RoundFigures::due);
  field("seconds", &RoundFigures::seconds);
  field("bytes_sent", &RoundFigures::bytes_sent);
  spread("train_loss", &RoundFigures::train_loss);
  spread("test_loss", &RoundFigures::test_loss);
  spread("test_accuracy", &RoundFigures::test_accuracy);
  field("consensus_distance", &RoundFigures::consensus_distance);
  field("averaged_loss", &RoundFigures::averaged_loss);
  field("averaged_accuracy", &RoundFigures::averaged_accuracy);
  field("distance_to_optimum", &RoundFigures::distance_to_optimum);
}

void append_links(std::string& text, const ViewSnapshot& snapshot) {
  using Link = std::pair<std::pair<int, int>, LinkFigures>;
  column(text, "a", snapshot.links, [](const Link& link) { return link.first.first; });
  column(text, "b", snapshot.links, [](const Link& link) { return link.first.second; });
  column(text, "state", snapshot.links, [](const Link& link) {
    return std::string_view(link.second.lost        ? "lost"
                            : link.second.suspected ? "suspected"
                                                    : "active");
  });
  column(text, "bytes", snapshot.links,
         [](const Link& link) { return link.second.sent_by_lower + link.second.sent_by_higher; });
  column(text, "cause", snapshot.links, [](const Link& link) { return link.second.cause; });
  column(text, "route", snapshot.links, [](const Link& link) { return link.second.route; });
  column(text, "relay", snapshot.links, [](const Link& link) {
    return link.second.relay < 0 ? kNotKnown : static_cast<double>(link.second.relay);
  });
}

void append_events(std::string& text, const std::vector<EventLine>& events) {
  const auto field = [&](const char* name, auto member) {
    column(text, name, events, [member](const EventLine& event) { return event.*member; });
  };
  field("seconds", &EventLine::seconds);
  field("round", &EventLine::round);
  field("peer", &EventLine::peer);
  field("event", &EventLine::event);
  field("text", &EventLine::text);
}

/// The value of a field; null if `object` is none or has no such field.
const Json& value_or_null(const Json& object, const char* field) {
  static const Json null;
  if (!object.is_object()) return null;
  const auto found = object.find(field);
  return found == object.end() ? null : *found;
}

/// The run in the words of its header.
Json run_json(const ViewSnapshot& snapshot) {
  const Json& header = *snapshot.run;
  const Json &config = value_or_null(header, "config"),
             &topology = value_or_null(header, "topology");
  const auto setting = [&](const char* section, const char* key) -> const Json& {
    return value_or_null(value_or_null(config, section), key);
  };
  Json run;
  for (const char* field :
       {"run_id", "version", "peers", "servers", "parameters", "time", "device"})
    run[field] = value_or_null(header, field);
  run["rounds"] = setting("run", "rounds");
  run["algorithm"] = setting("algorithm", "kind");
  run["policy"] = setting("algorithm", "policy");
  run["model"] = setting("model", "kind");
  run["data"] = setting("data", "kind");
  run["hostile"] = setting("attack", "peers");
  run["topology"] = setting("topology", "kind");
  for (const char* field : {"symmetric", "spectral_gap", "lattice"})
    run[field] = value_or_null(topology, field);
  run["edges"] = value_or_null(topology, "edge_list");
  // Of a log of a worker of a cut model: which one it is, of how many.
  run["part"] = value_or_null(header, "part");
  run["workers"] = run["part"].is_null() ? Json() : Json(parts_of(header));
  run["served_by"] = snapshot.served_by ? Json(*snapshot.served_by) : Json();
  run["hears_others"] = snapshot.hears_others;
  return run;
}

}  // namespace

std::string state_json(const ViewSnapshot& snapshot) {
  std::string text = fmt::format("{{\"version\":{}", snapshot.version);
  if (snapshot.run) {
    text += ",\"run\":" + text_of(run_json(snapshot));
    text += ",\"predicted\":" + text_of(*snapshot.predicted);
  }
  const auto object = [&](const char* name, auto fill) {
    fmt::format_to(std::back_inserter(text), ",\"{}\":{{", name);
    fill();
    text += '}';
  };
  object("nodes", [&] { append_nodes(text, snapshot.nodes); });
  object("rounds", [&] { append_rounds(text, snapshot.rounds); });
  object("links", [&] { append_links(text, snapshot); });
  object("events", [&] { append_events(text, snapshot.events); });
  text += ",\"end\":" + text_of(snapshot.end);
  if (snapshot.kept_rounds) text += ",\"kept_rounds\":" + text_of(Json(*snapshot.kept_rounds));
  return text + "}";
}

std::string round_json(std::uint64_t round, const ReplayedRound& replayed) {
  const PeerFigures& figures = replayed.peers;
  std::string text = "{";
  const auto field = [&](const char* name, const std::vector<float>& values) {
    column(text, name, values, [](float value) { return value; });
  };
  field("train_loss", figures.train_loss);
  field("test_loss", figures.test_loss);
  field("test_accuracy", figures.test_accuracy);
  field("distance", figures.distance);
  return text + fmt::format(",\"lost_links\":{},\"round\":{}}}", text_of(Json(replayed.lost_links)),
                            round);
}

}  // namespace gossamer::peer
