// A graph of one's own, from a file: an edge list, or GraphML (topology/graph_file.hpp says what
// may stand in them).
#include <fmt/format.h>

#include "topology/building.hpp"
#include "topology/graph_file.hpp"

namespace gossamer::topology::kinds::file {
namespace {

struct FileOptions {
  std::string path;
  bool directed = false;
};

const ParameterSet<FileOptions>& parameters() {
  static const auto set =
      ParameterSet<FileOptions>()
          .add(
              "path", &FileOptions::path,
              {.help = "edge list (a line: from to, or from to weight) or GraphML (.graphml, .xml)",
               .path = true})
          .add("directed", &FileOptions::directed,
               {.help = "edge list: edges are directed, from the first peer to the second; a "
                        "GraphML file states this itself"});
  return set;
}

}  // namespace

TopologyKind descriptor() {
  TopologyKind kind;
  kind.name = "file";
  kind.summary =
      "the graph in a file (edge list or GraphML), with the weights of the file if it has any";
  kind.parameters = parameters().specs();
  kind.needs_values = true;
  kind.make = [](const TopologyContext& context,
                 const ParameterValues& values) -> Result<std::unique_ptr<Topology>> {
    GOSSAMER_TRY(const FileOptions options, parameters().read("topology", values));
    if (options.path.empty())
      return invalid_error(
          "topology.path: topology file needs the path of an edge list or a GraphML file");
    GOSSAMER_TRY(const FileGraph read, read_graph_file(options.path, options.directed));
    if (read.peers != context.peers)
      return cannot_build("file", context.peers, fmt::format("{} has {}", options.path, read.peers),
                          [&read](int peers) { return peers == read.peers; });
    GOSSAMER_TRY(const WeightRows rows, rows_of(read, options.path));
    if (read.weighted) return weighted_topology(rows);
    Graph graph{std::vector<std::vector<int>>(rows.size())};
    for (std::size_t i = 0; i < rows.size(); ++i)  // ascending, so every list is
      for (const Neighbour& entry : rows[i])
        if (entry.peer != static_cast<int>(i))
          graph.out[static_cast<std::size_t>(entry.peer)].push_back(static_cast<int>(i));
    return static_topology(std::move(graph));
  };
  return kind;
}

}  // namespace gossamer::topology::kinds::file
