#include "train/graph/model_drawing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/printable.hpp"
#include "base/quantity_text.hpp"
#include "train/graph/operators.hpp"

namespace gossamer::train {
namespace {

// User units: pixels.
constexpr double kBoxWidth = 232, kBoxHeight = 50, kBend = 30, kGap = 26, kRow = 96, kMargin = 24,
                 kHead = 44;
constexpr const char* kInk = "#222222";
constexpr const char* kQuiet = "#667085";

/// Okabe and Ito 2008: colours that colour-blind readers can distinguish. Operators with
/// parameters, without, and the samples.
constexpr const char* kWithParameters = "#0072B2";
constexpr const char* kWithout = "#8A8F98";
constexpr const char* kOfSamples = "#D55E00";

/// A box, or the bend of an edge that passes through a row.
struct Item {
  int operation = kSampleInput;  ///< of a box
  bool is_bend = false;
  std::vector<std::size_t> above = {};  ///< items of the row before
  double x = 0;                         ///< centre
  std::size_t row = 0;

  double width() const { return is_bend ? kBend : kBoxWidth; }
};

/// An edge between two operations: the items that it passes.
struct Route {
  std::vector<std::size_t> items;
  double bytes = 0;
};

class ModelDrawing {
 public:
  ModelDrawing(const CompiledModel& model, const Shape& samples, int batch)
      : model_(model), samples_(samples), batch_(batch) {
    place_boxes();
    route_edges();
    for (int pass = 0; pass < 3; ++pass) order_rows();
  }

  std::string svg(const std::string& title) const {
    double width = 0;
    for (const Item& item : items_) width = std::max(width, item.x + item.width() / 2);
    width += kMargin;
    const double height = kHead + kRow * static_cast<double>(rows_.size()) + kMargin;
    std::string text = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
        "viewBox=\"0 0 "
        "{0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"12\">\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#FFFFFF\"/>\n"
        "<text x=\"{2:.0f}\" y=\"26\" font-size=\"15\" fill=\"{3}\">{4}</text>\n",
        width, height, kMargin, kInk, xml_text(printable(title)));
    for (const Route& route : routes_) add_edge(text, route);
    for (const Item& item : items_)
      if (!item.is_bend) add_box(text, item);
    return text + "</svg>\n";
  }

 private:
  std::size_t item_of(int operation) const { return static_cast<std::size_t>(operation + 1); }
  const CompiledOperation& operation_of(int operation) const {
    return model_.operations()[static_cast<std::size_t>(operation)];
  }
  const Shape& shape_of(int operation) const {
    return operation == kSampleInput ? samples_ : operation_of(operation).output;
  }

  void add_item(Item item) {
    if (rows_.size() <= item.row) rows_.resize(item.row + 1);
    rows_[item.row].push_back(items_.size());
    items_.push_back(std::move(item));
  }

  /// Item i + 1 is operation i, in the row behind its last input; item 0 are the samples.
  void place_boxes() {
    add_item({});
    for (const CompiledOperation& operation : model_.operations()) {
      Item item{.operation = static_cast<int>(items_.size()) - 1};
      for (const int input : operation.inputs)
        item.row = std::max(item.row, items_[item_of(input)].row + 1);
      add_item(std::move(item));
    }
  }

  void route_edges() {
    for (std::size_t o = 0; o < model_.operations().size(); ++o)
      for (const int input : model_.operations()[o].inputs) {
        Route route{
            .items = {item_of(input)},
            .bytes = static_cast<double>(shape_of(input).values()) * batch_ * sizeof(float)};
        for (std::size_t row = items_[item_of(input)].row + 1; row < items_[o + 1].row; ++row) {
          add_item({.is_bend = true, .above = {route.items.back()}, .row = row});
          route.items.push_back(items_.size() - 1);
        }
        items_[o + 1].above.push_back(route.items.back());
        route.items.push_back(o + 1);
        routes_.push_back(std::move(route));
      }
  }

  /// Orders each row by the mean place of the items above (Sugiyama et al. 1981), and centres it.
  void order_rows() {
    double widest = 0;
    const auto width_of = [&](const std::vector<std::size_t>& row) {
      double width = 0;
      for (const std::size_t item : row) width += items_[item].width() + kGap;
      return width - kGap;
    };
    for (const auto& row : rows_) widest = std::max(widest, width_of(row));
    for (auto& row : rows_) {
      const auto wanted = [&](std::size_t item) {
        double sum = 0;
        for (const std::size_t above : items_[item].above) sum += items_[above].x;
        return items_[item].above.empty() ? 0.0
                                          : sum / static_cast<double>(items_[item].above.size());
      };
      std::stable_sort(row.begin(), row.end(), [&](std::size_t a, std::size_t b) {
        // A bend lies beside a box that wants the same place.
        return std::pair(wanted(a), items_[a].is_bend) < std::pair(wanted(b), items_[b].is_bend);
      });
      double x = kMargin + (widest - width_of(row)) / 2;
      for (const std::size_t item : row) {
        items_[item].x = x + items_[item].width() / 2;
        x += items_[item].width() + kGap;
      }
    }
  }

  double top(const Item& item) const { return kHead + kRow * static_cast<double>(item.row); }

  void add_edge(std::string& text, const Route& route) const {
    const Item& from = items_[route.items.front()];
    double x = from.x, y = top(from) + kBoxHeight;
    std::string path = fmt::format("M{:.1f} {:.1f}", x, y);
    for (std::size_t i = 1; i < route.items.size(); ++i) {
      const Item& to = items_[route.items[i]];
      const double below = (top(to) - y) / 2;
      path += fmt::format("C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}", x, y + below, to.x,
                          top(to) - below, to.x, top(to));
      x = to.x, y = top(to);
      if (to.is_bend) path += fmt::format("L{:.1f} {:.1f}", x, y += kBoxHeight);
    }
    text += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.4\"/>\n", path,
                        kQuiet);
    const Item& to = items_[route.items.back()];
    text += fmt::format("<path d=\"M{0:.1f} {1:.1f}l-4 -7h8Z\" fill=\"{2}\"/>\n", to.x, top(to),
                        kQuiet);
    // The label stands where the edge leaves its operation, once for all edges of a tensor.
    text += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"10\" fill=\"{}\" stroke=\"#FFFFFF\" "
        "stroke-width=\"3\" paint-order=\"stroke\">{}</text>\n",
        from.x + 6, top(from) + kBoxHeight + 12, kQuiet, bytes_text(route.bytes));
  }

  void add_box(std::string& text, const Item& item) const {
    const bool is_samples = item.operation == kSampleInput;
    const char* colour = is_samples                                    ? kOfSamples
                         : operation_of(item.operation).parameters > 0 ? kWithParameters
                                                                       : kWithout;
    const double left = item.x - kBoxWidth / 2, y = top(item);
    text += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" rx=\"5\" fill=\"#FFFFFF\" "
        "stroke=\"{}\" stroke-width=\"1.6\"/>\n",
        left, y, kBoxWidth, kBoxHeight, colour);
    const auto line = [&](double below, const char* style, const std::string& content) {
      text += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", left + 9, y + below,
                          style, xml_text(content));
    };
    const std::string quiet = fmt::format("font-size=\"10\" fill=\"{}\"", kQuiet);
    line(15, fmt::format("font-weight=\"bold\" fill=\"{}\"", kInk).c_str(),
         is_samples ? "samples" : shortened(operation_of(item.operation).name));
    if (!is_samples) line(29, quiet.c_str(), shortened(describe(operation_of(item.operation).op)));
    line(43, quiet.c_str(), to_string(shape_of(item.operation)));
  }

  /// As much of a text as fits in a box.
  static std::string shortened(const std::string& text) {
    constexpr std::size_t kFits = 44;
    return text.size() <= kFits ? text : text.substr(0, kFits - 1) + "…";
  }

  const CompiledModel& model_;
  Shape samples_;
  int batch_;
  std::vector<Item> items_;
  std::vector<std::vector<std::size_t>> rows_;  // items, from left to right
  std::vector<Route> routes_;
};

}  // namespace

Result<std::string> draw_model(const CompiledModel& model, const std::string& title,
                               const Shape& samples, int batch) {
  if (model.operations().size() > kMostDrawnOperations)
    return invalid_error(
        fmt::format("--draw: {} operations are too many to see anything; the most "
                    "are {}",
                    model.operations().size(), kMostDrawnOperations));
  return ModelDrawing(model, samples, batch).svg(title);
}

}  // namespace gossamer::train
