// gossamer topology KIND… -n N: analyses the mixing matrices of one topology, or compares several
// in a table.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>

#include "cli/commands.hpp"
#include "cli/output/topology_output.hpp"
#include "peer/setup/rule_check.hpp"
#include "peer/storage/files.hpp"
#include "topology/convergence.hpp"
#include "topology/drawing.hpp"
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
  bool lazy = false, allow_negative = false, json = false, matrix = false;
  int rounds = 1;
  std::uint64_t parameters = 1000000, seed = 0;
  double decay = 0.9;
};

bool read_number(std::string_view text, int& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

/// Parses "16", "4,9,16", "2..64" or a combination.
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
      return invalid_error(fmt::format("-n {}: use the form 16, 4,9,16 or 2..64", text));
    for (int n = first; n <= last; ++n) counts.push_back(n);
    begin = end + 1;
  }
  return counts;
}

std::string key_of(const std::string& value) { return value.substr(0, value.find('=')); }

bool has_parameter(const std::string& kind, const std::string& key) {
  const auto found = topology::find_kind(kind);
  return found.ok() && std::any_of(found->parameters.begin(), found->parameters.end(),
                                   [&](const ParameterSpec& spec) { return spec.name == key; });
}

/// The kinds to analyse: the named ones, and with --all every kind that needs no value without a
/// default, such as a file.
Result<std::vector<std::string>> kinds_of(const TopologyCommand& command) {
  std::vector<std::string> kinds = command.kinds;
  if (command.all)
    for (const topology::TopologyKind& kind : topology::kinds::catalog())
      if (!kind.needs_values && std::find(kinds.begin(), kinds.end(), kind.name) == kinds.end())
        kinds.push_back(kind.name);
  if (kinds.empty())
    return invalid_error("topology: name a kind (gossamer list), several, or --all");
  if (kinds.size() > 1)
    for (const std::string& value : command.values)
      if (std::none_of(kinds.begin(), kinds.end(),
                       [&](const std::string& kind) { return has_parameter(kind, key_of(value)); }))
        return invalid_error(fmt::format("--set {}: none of these topologies has the parameter {}",
                                         value, key_of(value)));
  return kinds;
}

/// A key of [topology] that an argument sets, and how messages call the argument.
struct Setting {
  std::string argument;
  Override override;
};

/// An error in a setting, as the user has written it.
Error with_argument(Error error, const std::vector<Setting>& settings) {
  for (const Setting& setting : settings)
    if (const std::string origin = "--set " + setting.override + ": ";
        error.message.starts_with(origin))
      error.message.replace(0, origin.size(), setting.argument);
  return error;
}

/// The request for a kind. Of several kinds, each gets only the values that it has parameters for.
Result<topology::ScheduleRequest> request_of(const TopologyCommand& command,
                                             const std::string& kind, bool several) {
  // Reading them as a configuration gives the same error messages.
  std::vector<Setting> settings{
      {"", "topology.kind=" + kind},
      {fmt::format("--weights {}: ", command.weights), "topology.weights=" + command.weights},
      {"", std::string("topology.lazy=") + (command.lazy ? "true" : "false")},
      {"", std::string("topology.allow_negative=") + (command.allow_negative ? "true" : "false")}};
  for (const std::string& value : command.values)
    if (!several || has_parameter(kind, key_of(value)))
      settings.push_back({fmt::format("--set {}: ", value), "topology." + value});
  std::vector<Override> overrides;
  for (const Setting& setting : settings) overrides.push_back(setting.override);
  const auto config = load_config("", overrides);
  if (!config.ok()) return with_argument(config.error(), settings);
  return topology::ScheduleRequest{
      config->topology.kind, config->topology.values, config->topology.weights, {0, command.seed}};
}

Result<TopologyAnalysis> analyse(const TopologyCommand& command,
                                 const topology::ScheduleRequest& request) {
  GOSSAMER_TRY(auto schedule, topology::make_schedule(request));
  TopologyAnalysis analysis;
  GOSSAMER_TRY(analysis.report, topology::examine(*schedule, request, command.parameters));
  const int fewest = fewest_neighbours(*schedule).neighbours;
  analysis.convergence = topology::predict_convergence(*schedule, analysis.report.spectral_gap,
                                                       command.parameters, command.decay);
  analysis.lowest_eigenvalue = topology::lowest_eigenvalue(*schedule);
  analysis.hostile = theory::hostile_bounds(*schedule);
  for (const gossip::RuleKind& rule : gossip::rules::catalog())
    if (rule.least_neighbours)
      analysis.breakdowns.emplace_back(rule.name, rule.most_hostile(fewest));
  if (command.matrix) analysis.matrices = topology::period_matrices(*schedule, command.rounds);
  analysis.schedule = std::move(schedule);
  return analysis;
}

/// Prints each analysis at once, or all of them as a table.
struct Printer {
  const TopologyCommand& command;
  bool table = false;
  std::vector<TableRow> rows = {table_header()};
  std::vector<std::string> failures = {};

  void print(const TopologyAnalysis& analysis) {
    if (command.json) fmt::print("{}\n", analysis_json(analysis).dump());
    else if (table) rows.push_back(table_row(analysis));
    else print_text(analysis, command.parameters);
  }
  void print_failure(const std::string& kind, int n, const Error& error) {
    if (command.json)
      fmt::print("{}\n", Json{{"topology", kind}, {"peers", n}, {"error", error.message}}.dump());
    else if (table) failures.push_back(error.message);
    else fmt::print("{} of {} peers: {}\n", kind, n, error.message);
  }
  void finish() const {
    if (!table || command.json) return;
    if (rows.size() > 1) print_table(rows, {0, 2});
    for (const std::string& failure : failures) fmt::print("left out: {}\n", failure);
  }
};

/// The picture of --draw.
class Picture {
 public:
  void add(const TopologyAnalysis& analysis) {
    const topology::TopologyReport& report = analysis.report;
    schedules_.push_back(analysis.schedule);
    const std::string gap =
        std::isnan(report.spectral_gap) ? "" : fmt::format(", gap {:.3g}", report.spectral_gap);
    panels_.push_back(
        {analysis.schedule.get(), report.topology, fmt::format("{} peers{}", report.peers, gap)});
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
      const auto analysis = analyse(command, request);
      if (!analysis.ok() && counts.size() == 1 && !several) return analysis.error();
      if (analysis.ok()) {
        printer.print(*analysis);
        if (!command.draw.empty()) picture.add(*analysis);
        ++built;
      } else printer.print_failure(kind, n, analysis.error());
    }
  }
  printer.finish();
  if (built == 0)
    return invalid_error(fmt::format(
        "{} be built for any of -n {}",
        several ? "none of these topologies can" : kinds.front() + " cannot", command.peers));
  if (!command.draw.empty()) GOSSAMER_TRY_STATUS(picture.write(command.draw));
  return 0;
}

}  // namespace

void add_topology(CLI::App& app, int& exit_code) {
  auto command = std::make_shared<TopologyCommand>();
  CLI::App* topology = app.add_subcommand(
      "topology", "analyse the mixing matrix of a topology, or compare several in a table");
  topology->add_option("kind", command->kinds,
                       "topologies (gossamer list); several are compared in a table");
  topology->add_flag("--all", command->all, "compare all kinds that need no file");
  topology
      ->add_option("-n,--peers", command->peers, "number of peers: 16, or several: 4,9,16 or 2..64")
      ->capture_default_str();
  topology
      ->add_option("--set", command->values, "key=value: a parameter of the kind; may be repeated")
      ->allow_extra_args(false);
  topology
      ->add_option("--weights", command->weights,
                   "auto, metropolis, uniform, best_constant, out_degree, in_degree or given")
      ->capture_default_str();
  topology->add_flag("--lazy", command->lazy, "use (I + W) / 2");
  topology->add_flag("--allow-negative", command->allow_negative,
                     "accept negative weights of a peer's own row");
  topology
      ->add_option("--parameters", command->parameters, "float32 values in a row, to compute bytes")
      ->capture_default_str()
      ->check(whole_number());
  topology->add_option("--seed", command->seed, "seed of random topologies")
      ->capture_default_str()
      ->check(whole_number());
  topology->add_option("--decay", command->decay, "γ of the effective number of neighbours n_W(γ)")
      ->capture_default_str()
      ->check(CLI::Range(0.0, topology::kMostDecay));
  topology->add_option("--draw", command->draw, "draw the topologies to this SVG file")
      ->check(svg_file());
  CLI::Option* json = topology->add_flag("--json", command->json, "print one JSON object per line");
  CLI::Option* matrix = topology
                            ->add_flag("--matrix", command->matrix,
                                       "with --json: include W of each round of the period")
                            ->needs(json);
  topology
      ->add_option("--rounds", command->rounds,
                   "with --matrix: of a random sequence, include so many rounds")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000))
      ->needs(matrix);
  topology->callback([command, &exit_code] {
    auto result = execute(*command);
    exit_code = result.ok() ? *result : print_error(result.error());
  });
}

}  // namespace gossamer::cli
