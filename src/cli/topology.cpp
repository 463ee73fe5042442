// gossamer topology KIND… -n N: mixing matrices examined, one by one or beside each other in a
// table.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>

#include "cli/commands.hpp"
#include "peer/log/recorder.hpp"
#include "peer/storage/files.hpp"
#include "topology/drawing.hpp"
#include "topology/outlook.hpp"
#include "topology/report.hpp"

namespace gossamer::cli {

using namespace peer;
namespace {

struct TopologyCommand {
  std::vector<std::string> kinds;
  bool all = false;
  std::string peers = "16";
  std::vector<std::string> values;
  std::string weights = "auto", draw;
  bool lazy = false, json = false, matrix = false;
  std::uint64_t parameters = 1000000, seed = 0;
  double decay = 0.9;
};

bool read_number(std::string_view text, int& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

/// "16", "4,9,16", "2..64", and any mixture.
Result<std::vector<int>> read_counts(const std::string& text) {
  std::vector<int> counts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view item = std::string_view(text).substr(begin, end - begin);
    const std::size_t dots = item.find("..");
    int first = 0, last = 0;
    const bool read =
        dots == std::string_view::npos
            ? read_number(item, first) && read_number(item, last)
            : read_number(item.substr(0, dots), first) && read_number(item.substr(dots + 2), last);
    if (!read || first < 1 || last < first || last - first > 100000)
      return Error{ErrorKind::invalid,
                   fmt::format("-n {}: write it as 16, as 4,9,16 or as 2..64", text)};
    for (int n = first; n <= last; ++n) counts.push_back(n);
    begin = end + 1;
  }
  return counts;
}

std::string key_of(const std::string& value) { return value.substr(0, value.find('=')); }

bool takes(const std::string& kind, const std::string& key) {
  const auto found = topology::find_kind(kind);
  return found.ok() && std::any_of(found->parameters.begin(), found->parameters.end(),
                                   [&](const ParameterSpec& spec) { return spec.name == key; });
}

/// The kinds that were asked for: named, or all that need no file or other value of one's own.
Result<std::vector<std::string>> kinds_of(const TopologyCommand& command) {
  std::vector<std::string> kinds = command.kinds;
  if (command.all)
    for (const topology::TopologyKind& kind : topology::kinds::catalog())
      if (!kind.needs_values && std::find(kinds.begin(), kinds.end(), kind.name) == kinds.end())
        kinds.push_back(kind.name);
  if (kinds.empty())
    return Error{ErrorKind::invalid, "topology: name a kind (gossamer list), several, or --all"};
  if (kinds.size() > 1)
    for (const std::string& value : command.values)
      if (std::none_of(kinds.begin(), kinds.end(),
                       [&](const std::string& kind) { return takes(kind, key_of(value)); }))
        return Error{ErrorKind::invalid, fmt::format("--set {}: none of these topologies takes {}",
                                                     value, key_of(value))};
  return kinds;
}

/// Of several kinds, each is told the values that it takes.
Result<topology::ScheduleRequest> request_of(const TopologyCommand& command,
                                             const std::string& kind, bool several) {
  // The configuration's own reading of kind and keys: the same errors, the same choices.
  std::vector<Override> overrides{
      "topology.kind=" + kind, "topology.weights=" + command.weights,
      std::string("topology.lazy=") + (command.lazy ? "true" : "false")};
  for (const std::string& value : command.values)
    if (!several || takes(kind, key_of(value))) overrides.push_back("topology." + value);
  GOSSAMER_TRY(const Config config, load_config("", overrides));
  return topology::ScheduleRequest{
      config.topology.kind, config.topology.values, config.weights, {0, command.seed}};
}

/// One topology of one size, examined; `matrices` only where asked for.
struct Examined {
  std::shared_ptr<const topology::MixingSchedule> schedule;
  topology::TopologyReport report;
  topology::Outlook outlook;
  std::vector<std::vector<std::vector<double>>> matrices;
};

Result<Examined> examine(const TopologyCommand& command, const topology::ScheduleRequest& request) {
  GOSSAMER_TRY(auto schedule, topology::make_schedule(request));
  Examined examined;
  GOSSAMER_TRY(examined.report, topology::examine(*schedule, request, command.parameters));
  examined.outlook = topology::look_ahead(*schedule, examined.report.spectral_gap,
                                          command.parameters, command.decay);
  if (command.matrix) examined.matrices = topology::period_matrices(*schedule);
  examined.schedule = std::move(schedule);
  return examined;
}

std::string yes(bool truth) { return truth ? "yes" : "no"; }

/// 12,345,678 as 12.3 million; 1.2e+34 as that.
std::string count_text(double count) {
  if (!(count >= 1e5)) return fmt::format("{:.0f}", count);
  for (const auto& [unit, name] :
       {std::pair(1e12, "trillion"), {1e9, "billion"}, {1e6, "million"}, {1e3, "thousand"}})
    if (count >= unit && count < 1e15) return fmt::format("{:.3g} {}", count / unit, name);
  return fmt::format("{:.3g}", count);
}

std::string bytes_text(double bytes) {
  const char* const units[] = {"B", "KB", "MB", "GB", "TB", "PB", "EB"};
  std::size_t unit = 0;
  for (; bytes >= 1000 && unit + 1 < std::size(units); ++unit) bytes /= 1000;
  return bytes < 1000 ? fmt::format("{:.3g} {}", bytes, units[unit])
                      : fmt::format("{:.2e} {}", bytes, units[unit]);
}

std::string gap_text(double gap) {
  return std::isnan(gap) ? "not known" : fmt::format("{:.6g}", gap);
}

std::string range_text(int least, int most) {
  return least == most ? fmt::to_string(least) : fmt::format("{} to {}", least, most);
}

std::string rounds_text(const std::optional<topology::Round>& rounds, const char* none) {
  return rounds ? fmt::format("{} round{}", *rounds, *rounds == 1 ? "" : "s") : none;
}

/// The gaps of a period's rounds, equal neighbours counted: "0.5 0 × 3".
std::string round_gaps_text(const std::vector<double>& gaps) {
  constexpr std::size_t kMost = 12;
  std::string text;
  std::size_t groups = 0;
  for (std::size_t i = 0, end = 0; i < gaps.size(); i = end, ++groups) {
    const std::string gap = std::isnan(gaps[i]) ? "?" : fmt::format("{:.3g}", gaps[i]);
    while (end < gaps.size() &&
           (std::isnan(gaps[end]) ? "?" : fmt::format("{:.3g}", gaps[end])) == gap)
      ++end;
    if (groups == kMost) return text + " …";
    text += (i == 0 ? "" : " ") + gap + (end - i > 1 ? fmt::format(" × {}", end - i) : "");
  }
  return text;
}

void print_text(const Examined& examined, std::uint64_t parameters) {
  const topology::TopologyReport& report = examined.report;
  const topology::Outlook& outlook = examined.outlook;
  const auto line = [](std::string_view name, const std::string& value) {
    fmt::print("  {:<30}{}\n", name, value);
  };
  fmt::print("{} of {} peers, {} weights\n", report.topology, report.peers, report.weights);
  line("edges", fmt::format("{}{}", report.edges, report.symmetric ? "" : " (directed)"));
  line("neighbours heard a round", range_text(report.degree_min, report.degree_max));
  line("diameter",
       report.diameter
           ? fmt::format("{}{} hops", report.diameter_exact ? "" : "at least ", *report.diameter)
           : "not connected");
  line("period", report.period == 0
                     ? "none (random)"
                     : fmt::format("{} round{}", report.period, report.period == 1 ? "" : "s"));
  line("symmetric", yes(report.symmetric));
  line("doubly stochastic", yes(report.doubly_stochastic));
  line("connected", yes(report.connected));
  line("spectral gap",
       gap_text(report.spectral_gap) + (report.spectral_gap_sampled ? " (sampled)" : ""));
  if (report.period > 1) line("gap of each round alone", round_gaps_text(outlook.round_gaps));
  line("exactly averaged",
       outlook.rounds_to_exact ? "after " + rounds_text(outlook.rounds_to_exact, "") : "never");
  line("effective neighbours",
       std::isnan(outlook.effective_neighbours)
           ? "not known"
           : fmt::format("{:.4g} (γ = {}{})", outlook.effective_neighbours, outlook.decay,
                         outlook.effective_neighbours_sampled ? ", sampled" : ""));
  line("sent a round by a peer", fmt::format("{} bytes (busiest peer, rows of {} float32)",
                                             report.bytes_per_round_per_peer, parameters));
  line("distance down to a millionth",
       outlook.rounds_to_millionth
           ? fmt::format(
                 "after {}: {} messages, {} in all", rounds_text(outlook.rounds_to_millionth, ""),
                 count_text(outlook.messages_to_millionth), bytes_text(outlook.bytes_to_millionth))
           : "not known");
}

Json json_of(const Examined& examined) {
  const auto rounds = [](const std::optional<topology::Round>& count) {
    return count ? Json(*count) : Json();
  };
  const auto finite = [](double value) { return std::isfinite(value) ? Json(value) : Json(); };
  const topology::Outlook& outlook = examined.outlook;
  Json json = report_json(examined.report);
  json["diameter_at_least"] = examined.report.diameter ? Json(*examined.report.diameter) : Json();
  json["spectral_gap_sampled"] = examined.report.spectral_gap_sampled;
  json["round_gaps"] = Json::array();
  for (const double gap : outlook.round_gaps) json["round_gaps"].push_back(finite(gap));
  json["rounds_to_exact"] = rounds(outlook.rounds_to_exact);
  json["decay"] = outlook.decay;
  json["effective_neighbours"] = finite(outlook.effective_neighbours);
  json["effective_neighbours_sampled"] = outlook.effective_neighbours_sampled;
  json["rounds_to_millionth"] = rounds(outlook.rounds_to_millionth);
  json["messages_to_millionth"] =
      outlook.rounds_to_millionth ? Json(outlook.messages_to_millionth) : Json();
  json["bytes_to_millionth"] =
      outlook.rounds_to_millionth ? Json(outlook.bytes_to_millionth) : Json();
  if (!examined.matrices.empty()) json["matrix"] = examined.matrices;
  return json;
}

using Row = std::vector<std::string>;

Row table_head() {
  return {"topology", "n",      "weights", "edges",   "heard",    "diameter", "period",
          "gap",      "n_W(γ)", "exact",   "to 10⁻⁶", "messages", "bytes"};
}

Row table_row(const Examined& examined) {
  const topology::TopologyReport& report = examined.report;
  const topology::Outlook& outlook = examined.outlook;
  const bool known = outlook.rounds_to_millionth.has_value();
  return {report.topology,
          fmt::to_string(report.peers),
          report.weights,
          fmt::to_string(report.edges),
          report.degree_min == report.degree_max
              ? fmt::to_string(report.degree_min)
              : fmt::format("{}–{}", report.degree_min, report.degree_max),
          report.diameter ? fmt::format("{}{}", report.diameter_exact ? "" : "≥ ", *report.diameter)
                          : "–",
          report.period == 0 ? "random" : fmt::to_string(report.period),
          std::isnan(report.spectral_gap) ? "–" : fmt::format("{:.3g}", report.spectral_gap),
          std::isnan(outlook.effective_neighbours)
              ? "–"
              : fmt::format("{:.3g}", outlook.effective_neighbours),
          outlook.rounds_to_exact ? fmt::to_string(*outlook.rounds_to_exact) : "never",
          known ? fmt::to_string(*outlook.rounds_to_millionth) : "–",
          known ? count_text(outlook.messages_to_millionth) : "–",
          known ? bytes_text(outlook.bytes_to_millionth) : "–"};
}

/// Columns as wide as their widest cell (in characters, not bytes); the first and third to the
/// left, the others to the right.
void print_table(const std::vector<Row>& rows) {
  const auto width_of = [](const std::string& text) {
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
  };
  std::vector<std::size_t> widths(rows.front().size());
  for (const Row& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width_of(row[c]));
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string pad(widths[c] - width_of(row[c]), ' ');
      line += (c == 0 ? "" : "  ") + (c == 0 || c == 2 ? row[c] + pad : pad + row[c]);
    }
    fmt::print("{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
  }
}

/// Every kind at every n, printed as they come, or as one table.
struct Printer {
  const TopologyCommand& command;
  bool table = false;
  std::vector<Row> rows = {table_head()};
  std::vector<std::string> refusals = {};

  void print(const Examined& examined) {
    if (command.json) fmt::print("{}\n", json_of(examined).dump());
    else if (table) rows.push_back(table_row(examined));
    else print_text(examined, command.parameters);
  }
  void refuse(const std::string& kind, int n, const Error& error) {
    if (command.json)
      fmt::print("{}\n", Json{{"topology", kind}, {"peers", n}, {"error", error.message}}.dump());
    else if (table) refusals.push_back(error.message);
    else fmt::print("{} of {} peers: {}\n", kind, n, error.message);
  }
  void finish() const {
    if (!table || command.json) return;
    if (rows.size() > 1) print_table(rows);
    for (const std::string& refusal : refusals) fmt::print("left out: {}\n", refusal);
  }
};

/// What --draw writes.
class Picture {
 public:
  void add(const Examined& examined) {
    const topology::TopologyReport& report = examined.report;
    schedules_.push_back(examined.schedule);
    const std::string gap =
        std::isnan(report.spectral_gap) ? "" : fmt::format(", gap {:.3g}", report.spectral_gap);
    panels_.push_back(
        {examined.schedule.get(), report.topology, fmt::format("{} peers{}", report.peers, gap)});
  }
  Status write(const std::string& path) const {
    GOSSAMER_TRY(const std::string svg, topology::draw_svg(panels_));
    return write_file(path, svg);
  }

 private:
  std::vector<std::shared_ptr<const topology::MixingSchedule>> schedules_;
  std::vector<topology::Drawn> panels_;
};

Result<int> execute(const TopologyCommand& command) {
  GOSSAMER_TRY(const std::vector<int> counts, read_counts(command.peers));
  GOSSAMER_TRY(const std::vector<std::string> kinds, kinds_of(command));
  const bool several = kinds.size() > 1;
  std::size_t built = 0;
  Printer printer{command, several};
  Picture picture;
  for (const std::string& kind : kinds) {
    GOSSAMER_TRY(topology::ScheduleRequest request, request_of(command, kind, several));
    for (const int n : counts) {
      request.context.peers = n;
      const auto examined = examine(command, request);
      if (!examined.ok() && counts.size() == 1 && !several) return examined.error();
      if (examined.ok()) {
        printer.print(*examined);
        if (!command.draw.empty()) picture.add(*examined);
        ++built;
      } else printer.refuse(kind, n, examined.error());
    }
  }
  printer.finish();
  if (built == 0)
    return Error{ErrorKind::invalid,
                 fmt::format("{} be built for any of -n {}",
                             several ? "none of these topologies can" : kinds.front() + " cannot",
                             command.peers)};
  if (!command.draw.empty()) GOSSAMER_TRY_STATUS(picture.write(command.draw));
  return 0;
}

}  // namespace

void add_topology(CLI::App& app, int& exit_code) {
  auto command = std::make_shared<TopologyCommand>();
  CLI::App* topology = app.add_subcommand(
      "topology", "the mixing matrix of a topology, examined; of several, a table");
  topology->add_option("kind", command->kinds,
                       "topologies (gossamer list); more than one make a table");
  topology->add_flag("--all", command->all, "every kind that needs no file");
  topology->add_option("-n,--peers", command->peers, "peers: 16, or several: 4,9,16 or 2..64")
      ->capture_default_str();
  topology
      ->add_option("--set", command->values, "key=value: a parameter of the kind; may be repeated")
      ->allow_extra_args(false);
  topology
      ->add_option("--weights", command->weights,
                   "auto, metropolis, uniform, best_constant, out_degree or given")
      ->capture_default_str();
  topology->add_flag("--lazy", command->lazy, "(I + W) / 2");
  topology
      ->add_option("--parameters", command->parameters, "float32 values in a row, for the bytes")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  topology->add_option("--seed", command->seed, "of random kinds")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  topology->add_option("--decay", command->decay, "γ of the effective neighbours n_W(γ)")
      ->capture_default_str()
      ->check(CLI::Range(0.0, topology::kMostDecay));
  topology->add_option("--draw", command->draw, "an SVG file to draw them all into");
  CLI::Option* json = topology->add_flag("--json", command->json, "one JSON object a line");
  topology->add_flag("--matrix", command->matrix, "with --json: W of each round of the period")
      ->needs(json);
  topology->callback([command, &exit_code] {
    auto result = execute(*command);
    exit_code = result.ok() ? *result : report(result.error());
  });
}

}  // namespace gossamer::cli
