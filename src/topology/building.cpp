#include "topology/building.hpp"

#include <fmt/format.h>

#include <optional>

namespace gossamer::topology {
namespace {

class StaticTopology final : public Topology {
 public:
  explicit StaticTopology(Graph graph) : graph_(std::move(graph)) {}
  int peers() const override { return graph_.peers(); }
  int period() const override { return 1; }
  Graph graph(Round) const override { return graph_; }

 private:
  Graph graph_;
};

int largest_divisor_up_to_root(int n) {
  int best = 1;
  for (int divisor = 1; divisor <= n / divisor; ++divisor)
    if (n % divisor == 0) best = divisor;
  return best;
}

/// The layout that the options fix or leave to us, long sides or short; none when the product cannot be n.
std::optional<Layout> lay_out(int n, const LayoutOptions& options) {
  const int rows = options.rows > 0   ? options.rows
                   : options.cols > 0 ? n / options.cols
                                      : largest_divisor_up_to_root(n);
  if (rows == 0) return std::nullopt;
  const int cols = options.cols > 0 ? options.cols : n / rows;
  if (std::int64_t{rows} * cols != n) return std::nullopt;
  return Layout{rows, cols};
}

}  // namespace

std::unique_ptr<Topology> static_topology(Graph graph) { return std::make_unique<StaticTopology>(std::move(graph)); }

Error cannot_build(const std::string& kind, int peers, const std::string& why, const std::function<bool(int)>& works) {
  int below = peers - 1, above = peers + 1;
  while (below > 1 && !works(below)) --below;
  while (above <= kMaximumPeers && !works(above)) ++above;
  std::string hint;
  if (below > 1 && above <= kMaximumPeers) hint = fmt::format("; n = {} or n = {} works", below, above);
  else if (below > 1) hint = fmt::format("; n = {} works", below);
  else if (above <= kMaximumPeers) hint = fmt::format("; n = {} works", above);
  return {ErrorKind::invalid, fmt::format("topology {} cannot be built for {} peers: {}{}", kind, peers, why, hint)};
}

const ParameterSet<LayoutOptions>& layout_parameters() {
  static const auto set =
      ParameterSet<LayoutOptions>()
          .add("rows", &LayoutOptions::rows,
               {.help = "peers in a column; 0: from cols, or the squarest layout", .minimum = 0, .maximum = kMaximumPeers})
          .add("cols", &LayoutOptions::cols,
               {.help = "peers in a row; 0: from rows, or the squarest layout", .minimum = 0, .maximum = kMaximumPeers});
  return set;
}

Result<Layout> choose_layout(const LayoutRule& rule, int peers, const LayoutOptions& options) {
  const bool chosen = options.rows == 0 && options.cols == 0;
  const int minimum = chosen ? rule.minimum_chosen_side : rule.minimum_side;
  const auto works = [&](int n) {
    const std::optional<Layout> layout = lay_out(n, options);
    return layout && layout->rows >= minimum && layout->cols >= minimum;
  };
  const std::optional<Layout> layout = lay_out(peers, options);
  if (layout && (peers == 1 || works(peers))) return *layout;

  std::string why;
  if (!layout) {
    const auto side = [](int given) { return given > 0 ? fmt::to_string(given) : std::string("any"); };
    why = fmt::format("rows = {} by cols = {} is not {}", side(options.rows), side(options.cols), peers);
  } else {
    why = fmt::format("{} by {} {} the {}: {}", layout->rows, layout->cols, chosen ? "is" : "would be",
                      chosen ? "squarest layout" : "layout", rule.why);
  }
  return cannot_build(rule.kind, peers, why, works);
}

}  // namespace gossamer::topology
