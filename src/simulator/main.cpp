// The program `gossamer-simulator`: runs thousands of networks with faults in virtual time. An
// oracle checks each of them, and each can be repeated from its seed.
#include "simulator/simulate.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <thread>

#include "base/tokens.hpp"
#include "cli/program.hpp"
#include "peer/version.hpp"
#include "simulator/scenario/generator.hpp"
#include "simulator/scenario/shrink.hpp"
#include "simulator/storage/simulated_disks.hpp"

namespace gossamer::simulator {
namespace {

struct Command {
  std::string seeds = "0..99", scenario;
  std::vector<std::string> faults{"swarm"};
  int threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 64U));
  bool print = false, shrink = false, event_log = false, json = false;
};

Result<SimulatedSeeds> seeds_of(const Command& command) {
  const std::string_view text = command.seeds;
  const std::size_t dots = text.find("..");
  const auto first = number_in<std::uint64_t>(text.substr(0, dots));
  const auto last =
      dots == std::string_view::npos ? first : number_in<std::uint64_t>(text.substr(dots + 2));
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (!first || !last || *first > *last || *last > kMost || *last - *first >= 1'000'000'000)
    return invalid_error(fmt::format("--seeds {}: write it as 17 or 0..499", command.seeds));
  return SimulatedSeeds{*first, *last, command.faults, command.threads};
}

/// Prints one scenario; or runs it, and shrinks it where it fails.
Result<int> run_one(const Command& command, Scenario scenario) {
  if (command.print) {
    fmt::print("{}", to_text(scenario));
    return 0;
  }
  GOSSAMER_TRY(const auto disks, SimulatedDisks::create());
  const auto run = [&](const Scenario& each) { return simulate_scenario(each, disks->storage()); };
  const Outcome outcome = run(scenario);
  const int code = outcome.report.ok() ? 0 : static_cast<int>(ErrorKind::internal);
  if (code != 0 && command.shrink) {
    scenario =
        shrink(std::move(scenario), [&](const Scenario& each) { return !run(each).report.ok(); });
    fmt::print("{}", to_text(scenario));
    fmt::print(stderr, "{}", outcome_text(run(scenario)));
    return code;
  }
  if (command.event_log)
    for (const std::string& line : outcome.event_log) fmt::print("{}\n", line);
  fmt::print("{}trace {:016x}, {:.3f} s of virtual time, {} events, {} ends of links lost\n",
             outcome_text(outcome), outcome.hash, outcome.virtual_seconds, outcome.events,
             outcome.losses);
  return code;
}

Result<int> execute(const Command& command) {
  if (!command.scenario.empty()) {
    GOSSAMER_TRY(Scenario scenario, read_scenario(command.scenario));
    return run_one(command, std::move(scenario));
  }
  GOSSAMER_TRY(const SimulatedSeeds seeds, seeds_of(command));
  if (command.print) {
    GOSSAMER_TRY(const auto families, fault_families(seeds.faults, seeds.first));
    return run_one(command, draw_scenario(seeds.first, families));
  }
  GOSSAMER_TRY(const SimulationReport report, simulate_seeds(seeds));
  const std::string faults = fmt::format("{}", fmt::join(command.faults, ","));
  fmt::print(
      "{}", command.json ? peer::text_of(report_json(report)) + "\n" : report_text(report, faults));
  if (report.failed.empty()) return 0;
  if (command.shrink) {
    const std::uint64_t seed = report.failed.front().seed;
    fmt::print(stderr, "seed {}, shrunk:\n", seed);
    return run_one(command, draw_scenario(seed, fault_families(seeds.faults, seed).value()));
  }
  return static_cast<int>(ErrorKind::internal);
}

void add_options(CLI::App& app, Command& command) {
  app.add_option("--seeds", command.seeds, "a seed, or A..B, both included")->capture_default_str();
  app.add_option("--faults", command.faults,
                 "swarm (a random subset of the families, by seed), none, open (small open runs "
                 "in which peers come and go), or names of families: crash, pause, …")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--scenario", command.scenario,
                 "the TOML file of a scenario, as --print writes it, instead of seeds");
  app.add_option("--threads", command.threads, "seeds simulated at a time")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  app.add_flag("--print", command.print, "print the scenario of the (first) seed, and run nothing");
  app.add_flag("--shrink", command.shrink,
               "reduce the first scenario that fails to a smaller one, and print it");
  app.add_flag("--event-log", command.event_log,
               "with --scenario: print when links were lost and restored, and the peers' messages");
  app.add_flag("--json", command.json, "report as one JSON object");
}

}  // namespace
}  // namespace gossamer::simulator

int main(int argc, char** argv) {
  using namespace gossamer;
  CLI::App app(
      "Gossamer's fault simulator: the protocol under faults, in virtual time, checked by an "
      "oracle");
  app.name("gossamer-simulator");
  app.set_version_flag("--version", peer::kVersion);
  simulator::Command command;
  simulator::add_options(app, command);
  int exit_code = 0;
  app.callback([&] {
    const auto result = simulator::execute(command);
    exit_code = result.ok() ? *result : cli::print_error(result.error());
  });
  return cli::run_program(app, argc, argv, exit_code);
}
