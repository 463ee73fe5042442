#include "topology/drawing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>
#include <utility>

#include "base/printable.hpp"

namespace gossamer::topology {
namespace {

constexpr double kPanel = 260, kMargin = 22, kHead = 46, kFoot = 24;  // user units: pixels
constexpr int kColumns = 4;
/// Okabe and Ito 2008: colours that colour-blind readers can distinguish.
constexpr const char* kColours[kMostDrawnRounds] = {"#0072B2", "#D55E00", "#009E73",
                                                    "#CC79A7", "#E69F00", "#56B4E9"};
constexpr const char* kInk = "#222222";

struct Point {
  double x = 0, y = 0;
};

struct Line {
  int from = 0, to = 0, round = 0;
  bool both = false;  ///< the edge goes both ways
};

/// The lines of the drawn rounds; of an edge that several rounds have, the first.
Result<std::vector<Line>> lines_of(const Drawn& panel) {
  const int rounds =
      panel.schedule->period() == 0 ? 4 : std::min(panel.schedule->period(), kMostDrawnRounds);
  std::vector<Line> lines;
  std::set<std::pair<int, int>> drawn;
  for (int t = 0; t < rounds; ++t) {
    const auto w = panel.schedule->at(static_cast<Round>(t));
    for (int i = 0; i < w->peers(); ++i)
      for (const Neighbour& neighbour : w->in_neighbours(i)) {
        const int j = neighbour.peer;
        const auto back = w->in_neighbours(j);
        const bool both = std::any_of(back.begin(), back.end(),
                                      [&](const Neighbour& other) { return other.peer == i; });
        if ((both && j > i) || !drawn.emplace(j, i).second) continue;
        lines.push_back({j, i, t, both});
      }
    if (lines.size() > kMostDrawnLines)
      return invalid_error(
          fmt::format("--draw: {} has more than {} edges, too many to see anything; fewer peers",
                      panel.title, kMostDrawnLines));
  }
  return lines;
}

/// Where peer i of n sits: peer 0 on top, then clockwise.
Point place(int i, int n, Point centre, double radius) {
  const double angle = 2 * std::numbers::pi * i / n - std::numbers::pi / 2;
  return {centre.x + radius * std::cos(angle), centre.y + radius * std::sin(angle)};
}

/// A line between the rims of two peers, and the head of the arrow where it has one.
void add_line(std::string& svg, Point from, Point to, double rim, bool arrow, double width,
              const char* colour) {
  const double length = std::hypot(to.x - from.x, to.y - from.y);
  if (length <= 2 * rim) return;
  const Point step{(to.x - from.x) / length, (to.y - from.y) / length};
  const double head = arrow ? std::min(7.0, 0.3 * (length - 2 * rim)) : 0;
  const Point begin{from.x + step.x * rim, from.y + step.y * rim},
      end{to.x - step.x * rim, to.y - step.y * rim};
  svg += fmt::format(
      "<line x1=\"{:.2f}\" y1=\"{:.2f}\" x2=\"{:.2f}\" y2=\"{:.2f}\" stroke=\"{}\" "
      "stroke-width=\"{:.2f}\"/>\n",
      begin.x, begin.y, end.x - step.x * head, end.y - step.y * head, colour, width);
  if (!arrow) return;
  const Point base{end.x - step.x * head, end.y - step.y * head},
      side{-step.y * head * 0.42, step.x * head * 0.42};
  svg += fmt::format("<path d=\"M{:.2f} {:.2f}L{:.2f} {:.2f}L{:.2f} {:.2f}Z\" fill=\"{}\"/>\n",
                     end.x, end.y, base.x + side.x, base.y + side.y, base.x - side.x,
                     base.y - side.y, colour);
}

void add_text(std::string& svg, Point at, int size, const char* weight, const std::string& text,
              const char* colour = kInk) {
  svg += fmt::format(
      "<text x=\"{:.2f}\" y=\"{:.2f}\" font-size=\"{}\" font-weight=\"{}\" text-anchor=\"middle\" "
      "fill=\"{}\">{}</text>\n",
      at.x, at.y, size, weight, colour, xml_text(text));
}

/// Which colour is which round, centred below the panel.
void add_legend(std::string& svg, const MixingSchedule& schedule, double middle, double y,
                int rounds) {
  constexpr double kEach = 26;
  double x = middle - kEach * (rounds - 1) / 2 + 14;
  add_text(svg, {x - 34, y}, 10, "normal", "round");
  for (int t = 0; t < rounds; ++t, x += kEach) {
    svg += fmt::format(
        "<line x1=\"{:.2f}\" y1=\"{:.2f}\" x2=\"{:.2f}\" y2=\"{:.2f}\" stroke=\"{}\" "
        "stroke-width=\"2.5\"/>\n",
        x - 11, y - 3.5, x - 3, y - 3.5, kColours[t]);
    const bool last = t + 1 == rounds && (schedule.period() == 0 || schedule.period() > rounds);
    add_text(svg, {x + 3, y}, 10, "normal", fmt::format("{}{}", t, last ? " …" : ""));
  }
}

Status add_panel(std::string& svg, const Drawn& panel, Point corner) {
  const int n = panel.schedule->peers();
  if (n > kMostDrawnPeers)
    return invalid_error(fmt::format("--draw: {} peers are more than anyone can see; {} at most", n,
                                     kMostDrawnPeers));
  GOSSAMER_TRY(const std::vector<Line> lines, lines_of(panel));
  const double radius = kPanel / 2 - kMargin,
               rim = std::clamp(0.32 * 2 * std::numbers::pi * radius / n, 1.5, 8.0);
  const Point centre{corner.x + kPanel / 2, corner.y + kHead + kPanel / 2};
  add_text(svg, {centre.x, corner.y + 20}, 14, "bold", panel.title);
  add_text(svg, {centre.x, corner.y + 37}, 11, "normal", panel.subtitle);
  const double width =
      std::clamp(60.0 / std::sqrt(static_cast<double>(lines.size()) + 1), 0.3, 1.6) *
      (lines.size() > 60 ? 0.6 : 1);
  int rounds = 1;
  for (const Line& line : lines) {
    rounds = std::max(rounds, line.round + 1);
    add_line(svg, place(line.from, n, centre, radius), place(line.to, n, centre, radius), rim,
             !line.both, width, kColours[line.round]);
  }
  for (int i = 0; i < n; ++i) {
    const Point at = place(i, n, centre, radius);
    svg += fmt::format(
        "<circle cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"{:.2f}\" fill=\"white\" stroke=\"{}\" "
        "stroke-width=\"{}\"/>\n",
        at.x, at.y, rim, kInk, rim > 4 ? 1.2 : 0.6);
    if (rim >= 7) add_text(svg, {at.x, at.y + 3}, n > 10 ? 8 : 9, "normal", fmt::to_string(i));
  }
  if (rounds > 1)
    add_legend(svg, *panel.schedule, centre.x, corner.y + kHead + kPanel + 14, rounds);
  return {};
}

}  // namespace

Result<std::string> draw_svg(const std::vector<Drawn>& panels) {
  const int count = static_cast<int>(panels.size()), columns = std::min(count, kColumns);
  const int lines = (count + columns - 1) / std::max(columns, 1);
  const double width = columns * kPanel, each = kHead + kPanel + kFoot;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" "
      "font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      width, lines * each);
  for (int p = 0; p < count; ++p)
    GOSSAMER_TRY_STATUS(add_panel(svg, panels[static_cast<std::size_t>(p)],
                                  {p % columns * kPanel, p / columns * each}));
  return svg + "</svg>\n";
}

}  // namespace gossamer::topology
