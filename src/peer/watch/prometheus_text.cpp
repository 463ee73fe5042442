#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include "peer/watch/view_json.hpp"

namespace gossamer::peer {
namespace {

void family(std::string& text, std::string_view name, std::string_view type,
            std::string_view help) {
  fmt::format_to(std::back_inserter(text), "# HELP gossamer_{0} {2}\n# TYPE gossamer_{0} {1}\n",
                 name, type, help);
}

void sample(std::string& text, std::string_view name, const std::string& labels, double value) {
  if (std::isnan(value)) return;
  fmt::format_to(std::back_inserter(text), "gossamer_{}{} {:.17g}\n", name, labels, value);
}

std::string label_value(const Json& value) {
  std::string escaped;
  for (const char c : value.is_string() ? value.get<std::string>() : std::string()) {
    if (c == '\\' || c == '"') escaped += '\\';
    if (c == '\n') escaped += "\\n";
    else escaped += c;
  }
  return escaped;
}

/// A family with a sample of each node of the process: each process is a target of its own. Lost
/// peers are told by those that are left.
template <class Value>
void of_nodes(std::string& text, const ViewSnapshot& snapshot, std::string_view name,
              std::string_view type, std::string_view help, Value value) {
  family(text, name, type, help);
  for (const auto& [node, figures] : snapshot.nodes) {
    const bool own = !snapshot.served_by || std::ranges::binary_search(*snapshot.served_by, node);
    if ((own && figures.recorded) || (name == "peer_lost" && figures.state == NodeStatus::lost))
      sample(text, name, fmt::format("{{peer=\"{}\"}}", node), value(figures));
  }
}

void append_nodes(std::string& text, const ViewSnapshot& snapshot) {
  const auto gauge = [&](std::string_view name, std::string_view help, auto value) {
    of_nodes(text, snapshot, name, "gauge", help, value);
  };
  // Totals of a resumed run go on. A counter of a new process that began at them would be one that
  // was reset to that value, and its rate would jump.
  const auto counter = [&](std::string_view name, std::string_view what, auto member) {
    const std::string help =
        fmt::format("{} since the first record that this process has of the peer.", what);
    of_nodes(text, snapshot, name, "counter", help, [member](const NodeFigures& node) {
      return static_cast<double>(node.*member - node.first.*member);
    });
  };
  using Node = NodeFigures;
  gauge("round", "Rounds done, as of the newest record.",
        [](const Node& node) { return static_cast<double>(node.round); });
  gauge("train_loss", "Mean loss of the batches since the record before.",
        [](const Node& node) { return node.train_loss; });
  gauge("test_loss", "Loss of the peer's own model on the samples that data.evaluate names.",
        [](const Node& node) { return node.test_loss; });
  gauge("test_accuracy", "Accuracy of the peer's own model on those samples, 0 to 1.",
        [](const Node& node) { return node.test_accuracy; });
  gauge("distance_from_mean",
        "Distance of the peer's parameters from the mean over the honest peers.",
        [](const Node& node) { return node.distance; });
  gauge("run_seconds", "Seconds since the start, virtual or real.",
        [](const Node& node) { return node.seconds; });
  counter("bytes_sent_total", "Bytes sent, with headers,", &NodeTotals::bytes_sent);
  counter("bytes_received_total", "Bytes received, with headers,", &NodeTotals::bytes_received);
  counter("train_seconds_total", "Seconds of training", &NodeTotals::train_seconds);
  counter("wait_seconds_total", "Seconds of waiting for neighbours", &NodeTotals::wait_seconds);
  counter("mix_seconds_total", "Seconds of averaging", &NodeTotals::mix_seconds);
  gauge("peer_lost", "1: every neighbour that trains has lost its link to the peer.",
        [](const Node& node) { return node.state == NodeStatus::lost ? 1.0 : 0.0; });
}

/// What is known of the whole network in the newest round of which it is.
void append_newest(std::string& text, const ViewSnapshot& snapshot) {
  const auto newest = [&](std::string_view name, std::string_view help, auto member) {
    family(text, name, "gauge", help);
    double value = kNotKnown;
    for (const RoundFigures& round : snapshot.rounds)
      if (!std::isnan(round.*member)) value = round.*member;
    sample(text, name, "", value);
  };
  newest("consensus_distance",
         "Root mean square distance of the peers' parameters from their mean.",
         &RoundFigures::consensus_distance);
  newest("averaged_loss", "Loss of the averaged model.", &RoundFigures::averaged_loss);
  newest("averaged_accuracy", "Accuracy of the averaged model, 0 to 1.",
         &RoundFigures::averaged_accuracy);
  newest("distance_to_optimum", "Distance of the peers' models from the optimum, relative.",
         &RoundFigures::distance_to_optimum);
}

void append_process(std::string& text, const ProcessFigures& process) {
  const auto& [refused, delays] = process;
  family(text, "refused_connections_total", "counter",
         "Incoming connections that this process refused.");
  for (const auto& [reason, count] : refused.by_reason())
    sample(text, "refused_connections_total", fmt::format("{{reason=\"{}\"}}", reason),
           static_cast<double>(count));
  family(text, "timer_delay_seconds", "histogram",
         "Time from when a timer of this process was due until it fired.");
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < delays.counts.size(); ++i) {
    count += delays.counts[i];
    const bool last = i == delays.kBounds.size();
    sample(text, "timer_delay_seconds_bucket",
           last ? "{le=\"+Inf\"}" : fmt::format("{{le=\"{}\"}}", delays.kBounds[i]),
           static_cast<double>(count));
  }
  sample(text, "timer_delay_seconds_sum", "", delays.seconds);
  sample(text, "timer_delay_seconds_count", "", static_cast<double>(count));
}

}  // namespace

std::string metrics_text(const ViewSnapshot& snapshot) {
  std::string text;
  const auto config = [&](const char* section, const char* key) {
    const Json& all = snapshot.run->at("config");
    return all.contains(section) && all[section].contains(key) ? label_value(all[section][key])
                                                               : std::string();
  };
  family(text, "run_info", "gauge", "What runs.");
  if (snapshot.run)
    sample(text, "run_info",
           fmt::format("{{run_id=\"{}\",version=\"{}\",algorithm=\"{}\",topology=\"{}\",model="
                       "\"{}\",data=\"{}\"}}",
                       label_value(snapshot.run->at("run_id")),
                       label_value(snapshot.run->value("version", Json())),
                       config("algorithm", "kind"), config("topology", "kind"),
                       config("model", "kind"), config("data", "kind")),
           1);
  append_nodes(text, snapshot);
  family(text, "links_lost", "gauge", "Links between peers that are lost.");
  int lost = 0;
  for (const auto& [unused, link] : snapshot.links) lost += link.lost ? 1 : 0;
  sample(text, "links_lost", "", lost);
  append_newest(text, snapshot);
  if (snapshot.process) append_process(text, *snapshot.process);
  return text;
}

}  // namespace gossamer::peer
