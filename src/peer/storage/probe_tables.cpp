#include "peer/storage/probe_tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/tokens.hpp"
#include "peer/storage/files.hpp"

namespace gossamer::peer {
namespace {

namespace fs = std::filesystem;

constexpr const char *kLatencyFile = "latency.txt", *kJitterFile = "jitter.txt",
                     *kBandwidthFile = "bandwidth.txt", *kNodesFile = "nodes.txt";

/// The numbers of a line of nodes.txt, in their order, and the largest of each.
constexpr std::array kNodeColumns{&ProbedNode::step_ms, &ProbedNode::step_spread,
                                  &ProbedNode::uplink_mbit_s, &ProbedNode::downlink_mbit_s};
constexpr std::array kLargestOfNode{1e9, 2.0, 1e9, 1e9};

std::string link_text(const gossip::LinkTable& table, const char* heading) {
  std::string text = fmt::format("# {}; row: sender, column: receiver\n", heading);
  for (int from = 0; from < table.regions(); ++from)
    for (int to = 0; to < table.regions(); ++to)
      text += fmt::format("{:.6g}{}", table.at(from, to), to + 1 < table.regions() ? ' ' : '\n');
  return text;
}

std::string node_text(const std::vector<ProbedNode>& nodes) {
  std::string text =
      "# a line for each peer, and server: mean duration of a local step in ms, and the standard\n"
      "# deviation of its logarithm; Mbit/s that all links out of it share, and all into it, 0: "
      "unlimited\n";
  for (const ProbedNode& node : nodes)
    text += fmt::format("{:.6g} {:.6g} {:.6g} {:.6g}\n", node.step_ms, node.step_spread,
                        node.uplink_mbit_s, node.downlink_mbit_s);
  return text;
}

Error wrong_line(const std::string& name, int line, const std::string& what) {
  return data_error(fmt::format("{}:{}: {}", name, line, what));
}

Result<ProbedNode> node_of(const std::string& name, int line,
                           const std::vector<std::string_view>& words) {
  if (words.size() != kNodeColumns.size())
    return wrong_line(name, line,
                      fmt::format("{} numbers; a node has {}", words.size(), kNodeColumns.size()));
  ProbedNode node;
  for (std::size_t k = 0; k < kNodeColumns.size(); ++k) {
    const auto value = number_in<double>(words[k]);
    if (!value || !(*value >= 0 && *value <= kLargestOfNode[k]))
      return wrong_line(
          name, line,
          fmt::format("'{}' is not a number from 0 to {:g}", words[k], kLargestOfNode[k]));
    node.*kNodeColumns[k] = *value;
  }
  return node;
}

Error wrong_size(const std::string& name, std::size_t found, int nodes) {
  return data_error(
      fmt::format("{} is of a network of {} peers and servers, and this one has {}: "
                  "probe the network of this configuration",
                  name, found, nodes));
}

Result<gossip::LinkTable> read_links(const fs::path& file, int nodes) {
  GOSSAMER_TRY(const std::string text, read_file(file, most_table_bytes(nodes)));
  GOSSAMER_TRY(gossip::LinkTable table, gossip::LinkTable::parse(text, file.string()));
  if (table.regions() != nodes)
    return wrong_size(file.string(), static_cast<std::size_t>(table.regions()), nodes);
  return table;
}

}  // namespace

std::uint64_t most_table_bytes(int nodes) {
  const auto n = static_cast<std::uint64_t>(nodes);
  return (std::uint64_t{64} << 10) + 32 * n * n;
}

Status write_probe_tables(const fs::path& folder, const ProbeTables& tables) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error || !fs::is_directory(folder, error))
    return data_error(fmt::format("cannot make the folder {}: {}", folder.string(),
                                  error ? error.message() : "there is a file of that name"));
  const std::pair<const char*, std::string> files[] = {
      {kLatencyFile, link_text(tables.latencies_ms, "one-way latency in ms")},
      {kJitterFile, link_text(tables.jitters_ms, "largest additional delay in ms")},
      {kBandwidthFile, link_text(tables.bandwidths_mbit_s, "bandwidth in Mbit/s, 0: unlimited")},
      {kNodesFile, node_text(tables.nodes)}};
  for (const auto& [name, text] : files) GOSSAMER_TRY_STATUS(write_file(folder / name, text));
  return {};
}

Result<std::vector<ProbedNode>> parse_probed_nodes(std::string_view text, const std::string& name,
                                                   int nodes) {
  std::vector<ProbedNode> found;
  int line = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view content = text.substr(begin, end - begin);
    begin = end + 1;
    ++line;
    const auto words = tokens_of(content.substr(0, content.find('#')));
    if (words.empty()) continue;
    GOSSAMER_TRY(const ProbedNode node, node_of(name, line, words));
    found.push_back(node);
  }
  if (found.size() != static_cast<std::size_t>(nodes)) return wrong_size(name, found.size(), nodes);
  return found;
}

Result<ProbeTables> read_probe_tables(const fs::path& folder, int nodes) {
  ProbeTables tables;
  GOSSAMER_TRY(tables.latencies_ms, read_links(folder / kLatencyFile, nodes));
  GOSSAMER_TRY(tables.jitters_ms, read_links(folder / kJitterFile, nodes));
  GOSSAMER_TRY(tables.bandwidths_mbit_s, read_links(folder / kBandwidthFile, nodes));
  const fs::path file = folder / kNodesFile;
  GOSSAMER_TRY(const std::string text, read_file(file, most_table_bytes(nodes)));
  GOSSAMER_TRY(tables.nodes, parse_probed_nodes(text, file.string(), nodes));
  return tables;
}

}  // namespace gossamer::peer
