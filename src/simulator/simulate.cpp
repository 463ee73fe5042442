#include "simulator/simulate.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <toml++/toml.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "base/hash.hpp"
#include "simulator/replica/replica_trial.hpp"
#include "simulator/scenario/generator.hpp"
#include "simulator/session/session_trial.hpp"
#include "simulator/storage/simulated_disks.hpp"

namespace gossamer::simulator {

namespace {

constexpr std::uintmax_t kMostScenarioBytes = 1 << 20;  // a scenario has a few hundred

Result<ParameterValue> value_of(const toml::node& node) {
  if (const auto* value = node.as_boolean()) return ParameterValue(value->get());
  if (const auto* value = node.as_integer()) return ParameterValue(value->get());
  if (const auto* value = node.as_floating_point()) return ParameterValue(value->get());
  if (const auto* value = node.as_string()) return ParameterValue(value->get());
  std::vector<std::int64_t> integers;
  std::vector<std::string> texts;
  const toml::array* array = node.as_array();
  for (std::size_t k = 0; array != nullptr && k < array->size(); ++k) {
    if (const auto* integer = array->get(k)->as_integer()) integers.push_back(integer->get());
    if (const auto* text = array->get(k)->as_string()) texts.push_back(text->get());
  }
  if (array != nullptr && !integers.empty() && integers.size() == array->size())
    return ParameterValue(std::move(integers));
  if (array != nullptr && texts.size() == array->size()) return ParameterValue(std::move(texts));
  return invalid_error(
      "neither true or false, a number, a text, nor a list of integers or of texts");
}

}  // namespace

Outcome simulate_scenario(const Scenario& scenario, const MakeStorage& storage) {
  Outcome outcome = simulate(scenario, storage);
  const TrialReport session = try_session(scenario.seed), again = try_session(scenario.seed);
  CheckReport& report = outcome.report;
  report.checked["session"] += session.frames;
  ++report.checked["determinism"];
  for (const std::string& sentence : session.violations)
    report.violations.push_back("session: " + sentence);
  if (again.hash != session.hash)
    report.violations.push_back("determinism: a second trial of the sessions takes another course");
  const ReplicaTrialReport replicas = try_replicas(scenario.seed);
  report.checked["replica"] += replicas.decisions;
  report.checked["replica_return"] += replicas.returns;
  for (const std::string& sentence : replicas.violations)
    report.violations.push_back("replica: " + sentence);
  const std::uint64_t hashes[] = {outcome.hash, session.hash, replicas.hash};
  outcome.hash = hash64(std::as_bytes(std::span(hashes)));
  return outcome;
}

Result<SimulationReport> simulate_seeds(const SimulatedSeeds& seeds) {
  if (auto families = fault_families(seeds.faults, 0); !families.ok()) return families.error();
  GOSSAMER_TRY(const auto disks, SimulatedDisks::create());
  const MakeStorage storage = disks->storage();
  const auto begin = std::chrono::steady_clock::now();
  SimulationReport report;
  report.seeds = seeds.last - seeds.first + 1;
  std::vector<std::uint64_t> hashes(report.seeds);
  std::atomic<std::uint64_t> next{0};
  std::mutex mutex;
  const auto work = [&] {
    for (std::uint64_t k = next++; k < report.seeds; k = next++) {
      const std::uint64_t seed = seeds.first + k;
      Outcome outcome = simulate_scenario(
          draw_scenario(seed, fault_families(seeds.faults, seed).value()), storage);
      hashes[k] = outcome.hash;
      const std::lock_guard lock(mutex);
      report.events += outcome.events;
      report.virtual_seconds += outcome.virtual_seconds;
      report.with_losses += outcome.losses > 0 ? 1 : 0;
      report.with_restorations += outcome.restorations > 0 ? 1 : 0;
      report.joins += outcome.joins;
      report.one_sided += outcome.report.one_sided;
      report.most_drift = std::max(report.most_drift, outcome.report.drift);
      report.most_rounding = std::max(report.most_rounding, outcome.report.rounding);
      for (const auto& [property, count] : outcome.report.checked)
        report.checked[property] += count;
      if (!outcome.report.ok()) report.failed.push_back({seed, std::move(outcome)});
    }
  };
  std::vector<std::thread> workers;
  for (int k = 1; k < seeds.threads; ++k) workers.emplace_back(work);
  work();
  for (std::thread& worker : workers) worker.join();
  std::ranges::sort(report.failed, {}, &FailedSeed::seed);
  report.hash = hash_hex(std::as_bytes(std::span<const std::uint64_t>(hashes)));
  report.wall_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return report;
}

peer::Json report_json(const SimulationReport& report) {
  peer::Json failed = peer::Json::array();
  for (const FailedSeed& seed : report.failed)
    failed.push_back({{"seed", seed.seed},
                      {"trace_hash", fmt::format("{:016x}", seed.outcome.hash)},
                      {"violations", seed.outcome.report.violations}});
  return {{"seeds", report.seeds},
          {"failed", std::move(failed)},
          {"with_losses", report.with_losses},
          {"with_restorations", report.with_restorations},
          {"joins", report.joins},
          {"one_sided_edges", report.one_sided},
          {"most_drift", report.most_drift},
          {"most_rounding", report.most_rounding},
          {"events", report.events},
          {"virtual_seconds", report.virtual_seconds},
          {"wall_seconds", report.wall_seconds},
          {"checked", report.checked},
          {"hash", report.hash}};
}

std::string outcome_text(const Outcome& outcome) {
  std::string text;
  for (const std::string& sentence : outcome.report.violations)
    text += fmt::format("  {}\n", sentence);
  return text;
}

std::string report_text(const SimulationReport& report, const std::string& faults) {
  std::string text;
  for (const FailedSeed& seed : report.failed)
    text += fmt::format("seed {} fails:\n{}  gossamer-simulator --seeds {} --faults {}\n",
                        seed.seed, outcome_text(seed.outcome), seed.seed, faults);
  text +=
      fmt::format("{} seeds, {} failed; {} with losses, {} with restored links; {} peers joined\n",
                  report.seeds, report.failed.size(), report.with_losses, report.with_restorations,
                  report.joins);
  text += fmt::format("{:.0f} s of virtual time, {} events, in {:.1f} s\n", report.virtual_seconds,
                      report.events, report.wall_seconds);
  text += fmt::format(
      "edges that counted at one end: {}, drift of a mean at most {:.3g}; rounding at most {:.2f} "
      "of its bound\n",
      report.one_sided, report.most_drift, report.most_rounding);
  std::vector<std::string> counts;
  for (const auto& [property, count] : report.checked)
    counts.push_back(fmt::format("{} {}", property, count));
  return text + fmt::format("checked: {}\nhash {}\n", fmt::join(counts, ", "), report.hash);
}

Result<Scenario> read_scenario(const std::string& path) {
  GOSSAMER_TRY(const std::string content, read_file(path, kMostScenarioBytes));
  ParameterValues values;
  try {
    for (const auto& [name, node] : toml::parse(content, path)) {
      auto value = value_of(node);
      if (!value.ok())
        return invalid_error(fmt::format("{}:{}: {}: {}", path, node.source().begin.line,
                                         name.str(), value.error().message));
      values[std::string(name.str())] = std::move(value).value();
    }
  } catch (const toml::parse_error& error) {
    return invalid_error(
        fmt::format("{}:{}: not TOML: {}", path, error.source().begin.line, error.description()));
  }
  return scenario_of(values);
}

}  // namespace gossamer::simulator
