#include "topology/graph_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "base/input_file.hpp"
#include "base/tokens.hpp"
#include "topology/weights.hpp"

namespace gossamer::topology {
namespace {

Error wrong(const std::string& name, int line, const std::string& what) {
  return {ErrorKind::data, fmt::format("{}:{}: {}", name, line, what)};
}

constexpr std::uint64_t kMaxGraphBytes = 128 << 20;
constexpr std::size_t kMaxFileEdges = 4'000'000;  // of 32 bytes each

Error too_many_edges(const std::string& name, int line) {
  return wrong(name, line, fmt::format("more than {} edges", kMaxFileEdges));
}

/// What every edge must be, whatever the file's form.
Status check_edge(const FileEdge& edge, bool weighted, const std::string& name) {
  if (edge.from == edge.to)
    return wrong(name, edge.line,
                 fmt::format("peer {} is its own neighbour; leave this edge out: a peer's weight "
                             "on itself is the rest to 1",
                             edge.from));
  if (weighted && !(std::isfinite(edge.weight) && edge.weight > 0 && edge.weight <= 1))
    return wrong(name, edge.line,
                 fmt::format("{} is not a weight above 0 and up to 1", edge.weight));
  return {};
}

Result<int> peer_in(std::string_view word, const std::string& name, int line) {
  const auto peer = number_in<int>(word);
  if (!peer || *peer < 0 || *peer >= kMaximumPeers)
    return wrong(name, line,
                 fmt::format("'{}' is not a peer's number, 0 to {}", word, kMaximumPeers - 1));
  return *peer;
}

/// GraphML, tag by tag: no namespaces, no document types, entities as they are written.
class Tags {
 public:
  struct Tag {
    std::string_view name;  ///< with the slash of an end tag: "/edge"
    std::string_view inside;
    int line = 1;
    bool empty = false;     ///< <edge …/>
    std::string_view text;  ///< up to the next tag
  };

  explicit Tags(std::string_view text) : text_(text) {}

  /// The next tag; none at the end. A tag that does not end is an error.
  Result<std::optional<Tag>> next(const std::string& name) {
    while (true) {
      const std::size_t open = text_.find('<', at_);
      if (open == std::string_view::npos) return std::optional<Tag>();
      advance(open);
      const int line = line_;
      const bool comment = text_.substr(open, 4) == "<!--";
      const std::string_view closing = comment ? "-->" : ">";
      const std::size_t close = comment ? text_.find(closing, open) : end_of_tag(open);
      if (close == std::string_view::npos)
        return wrong(name, line, "a tag begins here and does not end");
      advance(close + closing.size());
      if (comment || text_[open + 1] == '?' || text_[open + 1] == '!') continue;
      Tag tag{{}, text_.substr(open + 1, close - open - 1), line, text_[close - 1] == '/', {}};
      if (tag.empty) tag.inside.remove_suffix(1);
      tag.name =
          tag.inside.substr(0, std::min(tag.inside.find_first_of(" \t\r\n"), tag.inside.size()));
      tag.inside.remove_prefix(tag.name.size());
      tag.text = text_.substr(at_, std::min(text_.find('<', at_), text_.size()) - at_);
      return std::optional<Tag>(tag);
    }
  }

 private:
  /// The > that is in no quotes.
  std::size_t end_of_tag(std::size_t open) const {
    char quote = 0;
    for (std::size_t i = open; i < text_.size(); ++i) {
      if (quote != 0) quote = text_[i] == quote ? char{0} : quote;
      else if (text_[i] == '"' || text_[i] == '\'') quote = text_[i];
      else if (text_[i] == '>') return i;
    }
    return std::string_view::npos;
  }
  void advance(std::size_t to) {
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         text_.begin() + static_cast<std::ptrdiff_t>(to), '\n'));
    at_ = to;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
};

/// name="value" or name='value' within a tag.
std::optional<std::string_view> attribute(const Tags::Tag& tag, std::string_view name) {
  const std::string_view text = tag.inside;
  for (std::size_t at = 0; at < text.size();) {
    while (at < text.size() && is_separator(text[at])) ++at;
    const std::size_t equals = text.find('=', at);
    if (equals == std::string_view::npos) return std::nullopt;
    std::string_view key = text.substr(at, equals - at);
    while (!key.empty() && is_separator(key.back())) key.remove_suffix(1);
    const std::size_t open = text.find_first_of("\"'", equals);
    if (open == std::string_view::npos) return std::nullopt;
    const std::size_t close = text.find(text[open], open + 1);
    if (close == std::string_view::npos) return std::nullopt;
    if (key == name) return text.substr(open + 1, close - open - 1);
    at = close + 1;
  }
  return std::nullopt;
}

/// The peers of node ids: 0..n−1 or n0..n(n−1) as they say, any others in the order of the file.
std::vector<int> peers_of(const std::vector<std::string>& ids) {
  std::vector<int> in_order(ids.size()), numbers;
  for (std::size_t i = 0; i < ids.size(); ++i) in_order[i] = static_cast<int>(i);
  for (const std::string_view prefix : {std::string_view(""), std::string_view("n")}) {
    numbers.clear();
    for (const std::string_view id : ids)
      if (const auto number =
              id.starts_with(prefix) ? number_in<int>(id.substr(prefix.size())) : std::nullopt)
        numbers.push_back(*number);
    std::vector<int> sorted = numbers;
    std::sort(sorted.begin(), sorted.end());
    if (sorted == in_order) return numbers;
  }
  return in_order;
}

/// What stands in a GraphML file, before its node ids become peers.
struct Document {
  std::vector<std::string> ids;
  std::map<std::string, int, std::less<>> index_of;
  std::vector<FileEdge> edges;  ///< ends: indices of ids
  std::vector<bool> has_weight;
  bool directed_by_default = false, in_edge = false;
  std::string weight_key;

  int index(std::string_view id) {
    const auto [place, added] = index_of.emplace(std::string(id), static_cast<int>(ids.size()));
    if (added) ids.emplace_back(id);
    return place->second;
  }
};

Status read_tag(const Tags::Tag& tag, Document& document, const std::string& name) {
  if (tag.name == "graph")
    document.directed_by_default =
        attribute(tag, "edgedefault").value_or("undirected") == "directed";
  if (tag.name == "key" && attribute(tag, "attr.name") == "weight" &&
      attribute(tag, "for").value_or("all") != "node")
    document.weight_key = std::string(attribute(tag, "id").value_or(""));
  if (tag.name == "node") {
    const auto id = attribute(tag, "id");
    if (!id) return wrong(name, tag.line, "a node without id");
    document.index(*id);
  }
  if (tag.name == "edge") {
    const auto source = attribute(tag, "source"), target = attribute(tag, "target");
    if (!source || !target) return wrong(name, tag.line, "an edge needs a source and a target");
    const auto own = attribute(tag, "directed");
    if (document.edges.size() == kMaxFileEdges) return too_many_edges(name, tag.line);
    const bool directed = own ? *own == "true" : document.directed_by_default;
    document.edges.push_back(
        {document.index(*source), document.index(*target), 0, directed, tag.line});
    document.has_weight.push_back(false);
    document.in_edge = !tag.empty;
  }
  if (tag.name == "/edge") document.in_edge = false;
  if (tag.name == "data" && document.in_edge && !document.weight_key.empty() &&
      attribute(tag, "key").value_or("") == document.weight_key) {
    const auto tokens = tokens_of(tag.text);
    const auto weight = tokens.size() == 1 ? number_in<double>(tokens[0]) : std::nullopt;
    if (!weight) return wrong(name, tag.line, fmt::format("'{}' is not a weight", tag.text));
    document.edges.back().weight = *weight;
    document.has_weight.back() = true;
  }
  return {};
}

}  // namespace

Result<FileGraph> parse_edge_list(std::string_view text, const std::string& name, bool directed) {
  FileGraph graph;
  int line = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view content = text.substr(begin, end - begin);
    content = content.substr(0, content.find('#'));
    begin = end + 1;
    ++line;
    const auto tokens = tokens_of(content);
    if (tokens.empty()) continue;
    if (tokens.size() < 2 || tokens.size() > 3)
      return wrong(
          name, line,
          fmt::format("'{}' is not an edge: write `from to`, or `from to weight`", content));
    FileEdge edge{0, 0, 0, directed, line};
    GOSSAMER_TRY(edge.from, peer_in(tokens[0], name, line));
    GOSSAMER_TRY(edge.to, peer_in(tokens[1], name, line));
    const bool weighted = tokens.size() == 3;
    if (graph.edges.empty()) graph.weighted = weighted;
    if (weighted != graph.weighted)
      return wrong(name, line,
                   weighted ? "this edge has a weight, and those before it have none"
                            : "this edge has no weight, and those before it have one");
    if (weighted) {
      const auto weight = number_in<double>(tokens[2]);
      if (!weight) return wrong(name, line, fmt::format("'{}' is not a weight", tokens[2]));
      edge.weight = *weight;
    }
    GOSSAMER_TRY_STATUS(check_edge(edge, weighted, name));
    if (graph.edges.size() == kMaxFileEdges) return too_many_edges(name, line);
    graph.peers = std::max({graph.peers, edge.from + 1, edge.to + 1});
    graph.edges.push_back(edge);
  }
  if (graph.edges.empty()) return wrong(name, std::max(line, 1), "no edge in the whole file");
  return graph;
}

Result<FileGraph> parse_graphml(std::string_view text, const std::string& name) {
  Document document;
  Tags tags(text);
  bool graphml = false;
  while (true) {
    GOSSAMER_TRY(const std::optional<Tags::Tag> tag, tags.next(name));
    if (!tag) break;
    graphml = graphml || tag->name == "graphml";
    GOSSAMER_TRY_STATUS(read_tag(*tag, document, name));
    if (document.ids.size() > kMaximumPeers)
      return wrong(name, tag->line, fmt::format("more than {} nodes", kMaximumPeers));
  }
  if (!graphml)
    return wrong(
        name, 1,
        "not GraphML: there is no <graphml> (an edge list's name ends otherwise, say .edges)");
  if (document.ids.empty()) return wrong(name, 1, "no node in the whole file");

  const std::vector<int> peers = peers_of(document.ids);
  FileGraph graph{static_cast<int>(document.ids.size()), false, std::move(document.edges)};
  graph.weighted = std::find(document.has_weight.begin(), document.has_weight.end(), true) !=
                   document.has_weight.end();
  for (std::size_t e = 0; e < graph.edges.size(); ++e) {
    FileEdge& edge = graph.edges[e];
    edge.from = peers[static_cast<std::size_t>(edge.from)],
    edge.to = peers[static_cast<std::size_t>(edge.to)];
    if (graph.weighted && !document.has_weight[e])
      return wrong(name, edge.line, "this edge has no weight, and others have one");
    GOSSAMER_TRY_STATUS(check_edge(edge, graph.weighted, name));
  }
  return graph;
}

Result<FileGraph> read_graph_file(const std::string& path, bool directed) {
  GOSSAMER_TRY(const std::string text, read_file(path, kMaxGraphBytes));
  return path.ends_with(".graphml") || path.ends_with(".xml")
             ? parse_graphml(text, path)
             : parse_edge_list(text, path, directed);
}

Result<WeightRows> rows_of(const FileGraph& graph, const std::string& name) {
  struct InNeighbour {
    int peer;
    double weight;
    int line;
  };
  std::vector<std::vector<InNeighbour>> in_neighbours(static_cast<std::size_t>(graph.peers));
  for (const FileEdge& edge : graph.edges) {
    in_neighbours[static_cast<std::size_t>(edge.to)].push_back({edge.from, edge.weight, edge.line});
    if (!edge.directed)
      in_neighbours[static_cast<std::size_t>(edge.from)].push_back(
          {edge.to, edge.weight, edge.line});
  }
  WeightRows rows;
  for (std::size_t i = 0; i < in_neighbours.size(); ++i) {
    std::sort(in_neighbours[i].begin(), in_neighbours[i].end(),
              [](const InNeighbour& a, const InNeighbour& b) {
                return std::pair(a.peer, a.line) < std::pair(b.peer, b.line);
              });
    std::vector<Neighbour> others;
    for (std::size_t h = 0; h < in_neighbours[i].size(); ++h) {
      if (h > 0 && in_neighbours[i][h].peer == in_neighbours[i][h - 1].peer)
        return wrong(name, in_neighbours[i][h].line,
                     fmt::format("peer {} has peer {} as an in-neighbour already, by line {}", i,
                                 in_neighbours[i][h].peer, in_neighbours[i][h - 1].line));
      others.push_back({in_neighbours[i][h].peer, in_neighbours[i][h].weight});
    }
    rows.push_back(complete_row(static_cast<int>(i), std::move(others)));
  }
  return rows;
}

}  // namespace gossamer::topology
