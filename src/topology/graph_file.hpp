// Graphs in files: edge lists and GraphML.
//
// Edge list: a line is `from to` or `from to weight`, peers numbered from 0; blank lines, and what
// follows a #, are passed over. There are as many peers as the largest number says, plus one. All
// lines have a weight, or none has.
//
// GraphML (graphml.graphdrawing.org): <node id="…"> and <edge source="…" target="…">, directed as
// the graph's edgedefault or the edge's `directed` says; the weight is the <data> of the key whose
// attr.name is "weight". Nodes whose ids are 0..n−1, or n0..n(n−1), are these peers; any other ids
// are numbered in the order in which the file names them.
//
// A weight is that of each end's row in the other end's mix (of a directed edge, of `from`'s row in
// `to`'s mix). The weight on oneself is what is missing to 1, and never stands in a
// file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "topology/kind.hpp"

namespace gossamer::topology {

struct FileEdge {
  int from = 0, to = 0;
  double weight = 0;  ///< where the file has weights
  bool directed = false;
  int line = 0;  ///< where it stands, from 1
};

struct FileGraph {
  int peers = 0;
  bool weighted = false;
  std::vector<FileEdge> edges;
};

/// Reads a file, GraphML where its name ends so (.graphml, .xml), else an edge list. The error
/// (data) names file and line.
Result<FileGraph> read_graph_file(const std::string& path, bool directed);

/// The same of text at hand; `name` stands for the file in errors.
Result<FileGraph> parse_edge_list(std::string_view text, const std::string& name, bool directed);
Result<FileGraph> parse_graphml(std::string_view text, const std::string& name);

/// Every edge's weights by row, completed by the diagonal; of a graph without weights, weights of
/// no meaning in their places. The error (data) is of an edge that stands there twice, with both
/// lines.
Result<WeightRows> rows_of(const FileGraph& graph, const std::string& name);

}  // namespace gossamer::topology
