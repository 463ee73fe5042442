// gossamer list: prints all plug-ins and all configuration keys.
#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "cli/catalog.hpp"
#include "cli/commands.hpp"
#include "peer/config/config_json.hpp"
#include "peer/storage/files.hpp"

namespace gossamer::cli {

using namespace peer;
namespace {

std::string range_text(const ParameterSpec& spec) {
  const ParameterNotes& notes = spec.notes;
  if (!notes.choices.empty()) return fmt::format("{}", fmt::join(notes.choices, " | "));
  std::string text = to_string(spec.type);
  if (std::isfinite(notes.minimum))
    text += fmt::format(" {} {}", notes.minimum_excluded ? ">" : "≥", notes.minimum);
  if (std::isfinite(notes.maximum))
    text += fmt::format("{} ≤ {}", std::isfinite(notes.minimum) ? "," : "", notes.maximum);
  return notes.unit.empty() ? text : text + " " + notes.unit;
}

/// The operators before the sections.
std::vector<CatalogGroup> listed() {
  std::vector<CatalogGroup> groups = catalog();
  groups.insert(groups.end() - 1, operators());
  return groups;
}

void print_text(bool verbose) {
  for (const CatalogGroup& group : listed()) {
    fmt::print("{}\n", group.name);
    for (const CatalogEntry& entry : group.entries) {
      fmt::print("  {:<26}{}\n", entry.name, entry.summary);
      if (!verbose) continue;
      if (!entry.source.empty()) fmt::print("  {:<26}source: {}\n", "", entry.source);
      for (const ParameterSpec& spec : entry.parameters) {
        const std::string value = to_string(spec.default_value);
        fmt::print("  {:<26}  {} = {}   [{}] {}\n", "", spec.name, value.empty() ? "\"\"" : value,
                   range_text(spec), spec.notes.help);
      }
    }
  }
}

void print_json() {
  Json all;
  for (const CatalogGroup& group : listed())
    for (const CatalogEntry& entry : group.entries) {
      Json parameters = Json::object();
      for (const ParameterSpec& spec : entry.parameters)
        parameters[spec.name] = {{"type", to_string(spec.type)},
                                 {"default", to_json(spec.default_value)},
                                 {"minimum", finite_or_null(spec.notes.minimum)},
                                 {"maximum", finite_or_null(spec.notes.maximum)},
                                 {"choices", spec.notes.choices},
                                 {"unit", spec.notes.unit},
                                 {"help", spec.notes.help}};
      all[group.name][entry.name] = {
          {"summary", entry.summary}, {"source", entry.source}, {"parameters", parameters}};
    }
  fmt::print("{}\n", all.dump(2));
}

}  // namespace

void add_list(CLI::App& app, int& exit_code) {
  auto verbose = std::make_shared<bool>(false), json = std::make_shared<bool>(false);
  CLI::App* list = app.add_subcommand("list",
                                      "list the topologies, algorithms, codecs, mixing rules, "
                                      "attacks, models, their operators, data sets, optimizers "
                                      "and configuration sections");
  list->add_flag("-v,--verbose", *verbose, "with sources and parameters");
  list->add_flag("--json", *json, "print everything as JSON");
  list->callback([verbose, json, &exit_code] {
    *json ? print_json() : print_text(*verbose);
    exit_code = 0;
  });
}

}  // namespace gossamer::cli
