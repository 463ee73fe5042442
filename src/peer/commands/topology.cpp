// gossamer topology KIND -n N: the mixing matrix examined.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>

#include "peer/commands/commands.hpp"
#include "peer/recorder.hpp"
#include "topology/report.hpp"

namespace gossamer::peer {
namespace {

struct TopologyCommand {
  std::string kind;
  std::string peers = "16";
  std::vector<std::string> values;
  std::string weights = "metropolis";
  bool lazy = false, json = false, matrix = false;
  std::uint64_t parameters = 1000000, seed = 0;
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
    const bool read = dots == std::string_view::npos
                          ? read_number(item, first) && read_number(item, last)
                          : read_number(item.substr(0, dots), first) && read_number(item.substr(dots + 2), last);
    if (!read || first < 1 || last < first || last - first > 100000)
      return Error{ErrorKind::invalid, fmt::format("-n {}: write it as 16, as 4,9,16 or as 2..64", text)};
    for (int n = first; n <= last; ++n) counts.push_back(n);
    begin = end + 1;
  }
  return counts;
}

Result<topology::ScheduleRequest> request_of(const TopologyCommand& command) {
  // The configuration's own reading of kind and keys: the same errors, the same choices.
  std::vector<Override> overrides{"topology.kind=" + command.kind, "topology.weights=" + command.weights,
                                  std::string("topology.lazy=") + (command.lazy ? "true" : "false")};
  for (const std::string& value : command.values) overrides.push_back("topology." + value);
  GOSSAMER_TRY(const Config config, load_config("", overrides));
  return topology::ScheduleRequest{config.topology.kind, config.topology.values, config.weights, {0, command.seed}};
}

std::string yes(bool truth) { return truth ? "yes" : "no"; }

void print_text(const topology::TopologyReport& report, std::uint64_t parameters) {
  const auto line = [](std::string_view name, const std::string& value) { fmt::print("  {:<28}{}\n", name, value); };
  fmt::print("{} of {} peers, {} weights\n", report.topology, report.peers, report.weights);
  line("edges", fmt::format("{}{}", report.edges, report.symmetric ? "" : " (directed)"));
  line("neighbours heard a round", report.degree_min == report.degree_max
                                       ? fmt::format("{}", report.degree_min)
                                       : fmt::format("{} to {}", report.degree_min, report.degree_max));
  line("diameter", report.diameter ? fmt::format("{} hops", *report.diameter) : "not connected");
  line("period",
       report.period == 0 ? "none (random)" : fmt::format("{} round{}", report.period, report.period == 1 ? "" : "s"));
  line("symmetric", yes(report.symmetric));
  line("doubly stochastic", yes(report.doubly_stochastic));
  line("connected", yes(report.connected));
  line("spectral gap", fmt::format("{:.6g}{}", report.spectral_gap, report.spectral_gap_sampled ? " (sampled)" : ""));
  line("sent a round by a peer",
       fmt::format("{} bytes (busiest peer, rows of {} float32)", report.bytes_per_round_per_peer, parameters));
}

Result<int> execute(const TopologyCommand& command) {
  GOSSAMER_TRY(const std::vector<int> counts, read_counts(command.peers));
  GOSSAMER_TRY(topology::ScheduleRequest request, request_of(command));
  std::size_t built = 0;
  for (int n : counts) {
    request.context.peers = n;
    auto schedule = topology::make_schedule(request);
    if (!schedule.ok()) {
      if (counts.size() == 1) return schedule.error();
      if (command.json)
        fmt::print("{}\n", Json{{"topology", command.kind}, {"peers", n}, {"error", schedule.error().message}}.dump());
      else fmt::print("{} of {} peers: {}\n", command.kind, n, schedule.error().message);
      continue;
    }
    GOSSAMER_TRY(const topology::TopologyReport report, topology::examine(**schedule, request, command.parameters));
    ++built;
    if (!command.json) {
      print_text(report, command.parameters);
      continue;
    }
    Json json = report_json(report);
    if (command.matrix) json["matrix"] = topology::period_matrices(**schedule);
    fmt::print("{}\n", json.dump());
  }
  if (built == 0)
    return Error{ErrorKind::invalid, fmt::format("{} cannot be built for any of -n {}", command.kind, command.peers)};
  return 0;
}

}  // namespace

void add_topology(CLI::App& app, int& exit_code) {
  auto command = std::make_shared<TopologyCommand>();
  CLI::App* topology = app.add_subcommand("topology", "the mixing matrix of a topology, examined");
  topology->add_option("kind", command->kind, "a topology (gossamer list)")->required();
  topology->add_option("-n,--peers", command->peers, "peers, at most 4096: 16, or several: 4,9,16 or 2..64")->capture_default_str();
  topology->add_option("--set", command->values, "key=value: a parameter of the kind; may be repeated")
      ->allow_extra_args(false);
  topology->add_option("--weights", command->weights, "metropolis or uniform")->capture_default_str();
  topology->add_flag("--lazy", command->lazy, "(I + W) / 2");
  topology->add_option("--parameters", command->parameters, "float32 values in a row, for the bytes")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  topology->add_option("--seed", command->seed, "of random kinds")->capture_default_str()->check(CLI::NonNegativeNumber);
  CLI::Option* json = topology->add_flag("--json", command->json, "one JSON object a line");
  topology->add_flag("--matrix", command->matrix, "with --json: W of each round of the period")->needs(json);
  topology->callback([command, &exit_code] {
    auto result = execute(*command);
    exit_code = result.ok() ? *result : report(result.error());
  });
}

}  // namespace gossamer::peer
