#include "peer/config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <toml++/toml.h>

#include "base/hash.hpp"
#include "peer/sections.hpp"

namespace gossamer::peer {
namespace {

Error invalid(std::string message) { return {ErrorKind::invalid, std::move(message)}; }

/// A value as it was given, and where: TOML values have their type, those of --set are text until their key is known.
struct Given {
  std::optional<ParameterValue> value;
  std::string text;
  std::string place;  ///< "run.toml:12" or "--set"
};
using GivenSection = std::map<std::string, Given>;
using GivenConfig = std::map<std::string, GivenSection>;

/// The section called `name`, or an error that lists them.
Result<const Section*> find_section(const std::string& place, const std::string& name) {
  std::vector<std::string> names;
  for (const Section& section : sections()) {
    if (section.name == name) return &section;
    names.push_back(section.name);
  }
  return invalid(fmt::format("{}: unknown section [{}]; there are: {}", place, name, fmt::join(names, ", ")));
}

Result<ParameterValue> from_toml(const toml::node& node) {
  if (const auto* value = node.as_boolean()) return ParameterValue(value->get());
  if (const auto* value = node.as_integer()) return ParameterValue(value->get());
  if (const auto* value = node.as_floating_point()) return ParameterValue(value->get());
  if (const auto* value = node.as_string()) return ParameterValue(value->get());
  if (const auto* array = node.as_array()) {
    std::vector<std::int64_t> integers;
    std::vector<std::string> texts;
    for (const toml::node& item : *array) {
      if (const auto* integer = item.as_integer()) integers.push_back(integer->get());
      else if (const auto* text = item.as_string()) texts.push_back(text->get());
    }
    if (integers.size() == array->size()) return ParameterValue(std::move(integers));
    if (texts.size() == array->size()) return ParameterValue(std::move(texts));
    return invalid("a list holds integers only or texts only");
  }
  return invalid("neither true or false, a number, a text nor a list");
}

Status read_section(const std::string& file, const std::string& name, const toml::node& node, GivenConfig& given) {
  const std::string place = fmt::format("{}:{}", file, node.source().begin.line);
  GOSSAMER_TRY_STATUS([&]() -> Status {
    auto section = find_section(place, name);
    return section.ok() ? Status() : Status(section.error());
  }());
  const toml::table* table = node.as_table();
  if (table == nullptr) return invalid(fmt::format("{}: {} is a section: write [{}] above its keys", place, name, name));
  for (const auto& [key, value] : *table) {
    Given entry;
    entry.place = fmt::format("{}:{}", file, value.source().begin.line);
    auto parsed = from_toml(value);
    if (!parsed.ok()) return invalid(fmt::format("{}: {}.{}: {}", entry.place, name, key.str(), parsed.error().message));
    entry.value = std::move(parsed).value();
    given[name][std::string(key.str())] = std::move(entry);
  }
  return {};
}

Result<GivenConfig> read_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::stringstream content;
  if (!stream || !(content << stream.rdbuf()))
    return Error{ErrorKind::data, fmt::format("cannot read the configuration {}: {}", path,
                                              errno != 0 ? std::strerror(errno) : "it is empty or not a file")};
  GivenConfig given;
  try {
    const toml::table root = toml::parse(content.str(), path);
    for (const auto& [name, node] : root) GOSSAMER_TRY_STATUS(read_section(path, std::string(name.str()), node, given));
  } catch (const toml::parse_error& error) {
    return invalid(fmt::format("{}:{}: not TOML: {}", path, error.source().begin.line, error.description()));
  }
  return given;
}

Status apply_override(const Override& override, GivenConfig& given) {
  const std::size_t equals = override.find('='), dot = override.find('.');
  if (equals == std::string::npos || dot == std::string::npos || dot > equals)
    return invalid(fmt::format("--set {}: write it as section.key=value", override));
  const std::string section = override.substr(0, dot), key = override.substr(dot + 1, equals - dot - 1);
  auto known = find_section("--set " + override, section);
  if (!known.ok()) return known.error();
  given[section][key] = {std::nullopt, override.substr(equals + 1), "--set " + override};
  return {};
}

/// The kind a section asks for, which must be in its catalog.
Result<KindSpec> chosen_kind(const Section& section, const GivenSection& given) {
  std::string kind = section.default_kind, place;
  if (const auto found = given.find("kind"); found != given.end()) {
    const Given& entry = found->second;
    place = entry.place + ": ";
    if (entry.value && !std::holds_alternative<std::string>(*entry.value))
      return invalid(fmt::format("{}{}.kind: '{}' is not a text", place, section.name, to_string(*entry.value)));
    kind = entry.value ? std::get<std::string>(*entry.value) : entry.text;
  }
  std::vector<std::string> names;
  for (KindSpec& spec : section.catalog()) {
    if (spec.name == kind) return std::move(spec);
    names.push_back(spec.name);
  }
  return invalid(fmt::format("{}{}.kind: there is no '{}'; there are: {}", place, section.name, kind, fmt::join(names, ", ")));
}

/// A section checked: `values` by key with defaults, those of the kind apart.
struct ReadSection {
  std::string kind;
  ParameterValues common, own, all;
};

Result<ReadSection> read_values(const Section& section, const GivenSection& given) {
  ReadSection read;
  std::vector<ParameterSpec> own;
  if (section.catalog) {
    GOSSAMER_TRY(KindSpec kind, chosen_kind(section, given));
    read.kind = kind.name;
    read.all["kind"] = kind.name;
    own = std::move(kind.parameters);
  }
  std::set<std::string> known{"kind"};
  const auto take = [&](const std::vector<ParameterSpec>& specs, ParameterValues& into) -> Status {
    for (const ParameterSpec& spec : specs) {
      known.insert(spec.name);
      into[spec.name] = spec.default_value;
      if (const auto found = given.find(spec.name); found != given.end()) {
        const Given& entry = found->second;
        auto value = entry.value ? check_value(spec, *entry.value) : parse_value(spec, entry.text);
        if (!value.ok())
          return invalid(fmt::format("{}: {}.{}: {}", entry.place, section.name, spec.name, value.error().message));
        into[spec.name] = std::move(value).value();
      }
      read.all[spec.name] = into[spec.name];
    }
    return {};
  };
  GOSSAMER_TRY_STATUS(take(section.keys, read.common));
  GOSSAMER_TRY_STATUS(take(own, read.own));
  if (!section.catalog) known.erase("kind");
  for (const auto& [key, entry] : given)
    if (!known.contains(key))
      return invalid(fmt::format("{}: {}.{}: unknown{}; there are: {}", entry.place, section.name, key,
                                 read.kind.empty() ? "" : " for kind " + read.kind, fmt::join(known, ", ")));
  return read;
}

/// Keys that say where this machine finds a thing, not what the run is.
bool machine_specific(const std::string& key) { return key == "path" || key == "images" || key == "labels" || key == "id"; }

}  // namespace

Result<Config> load_config(const std::string& path, const std::vector<Override>& overrides) {
  GivenConfig given;
  if (!path.empty()) {
    GOSSAMER_TRY(given, read_file(path));
  }
  for (const Override& override : overrides) GOSSAMER_TRY_STATUS(apply_override(override, given));

  Config config;
  std::map<std::string, ReadSection> read;
  for (const Section& section : sections()) {
    GOSSAMER_TRY(ReadSection values, read_values(section, given[section.name]));
    config.resolved[section.name] = values.all;
    read[section.name] = std::move(values);
  }
  GOSSAMER_TRY(config.run, run_parameters().read("run", read["run"].common));
  GOSSAMER_TRY(config.weights, topology::weight_parameters().read("topology", read["topology"].common));
  GOSSAMER_TRY(config.exchange, exchange_parameters().read("algorithm", read["algorithm"].common));
  GOSSAMER_TRY(config.shards, train::shard_parameters().read("data", read["data"].common));
  GOSSAMER_TRY(config.optimizer, train::optimizer_parameters().read("optimizer", read["optimizer"].common));
  GOSSAMER_TRY(config.sim, sim_parameters().read("sim", read["sim"].common));
  GOSSAMER_TRY(config.net, net::net_parameters().read("net", read["net"].common));
  GOSSAMER_TRY(config.local, local_parameters().read("local", read["local"].common));
  GOSSAMER_TRY(config.log, log_parameters().read("log", read["log"].common));
  for (auto [name, choice] : {std::pair("topology", &config.topology), std::pair("algorithm", &config.algorithm),
                              std::pair("model", &config.model), std::pair("data", &config.data)})
    *choice = {read[name].kind, read[name].own};
  return config;
}

std::string Config::shared_hash() const {
  std::string text;
  for (const Section& section : sections()) {
    if (!section.shared) continue;
    for (const auto& [key, value] : resolved.at(section.name))
      if (!machine_specific(key)) text += fmt::format("{}.{}={}\n", section.name, key, to_string(value));
  }
  return hash_hex(text);
}

std::string Config::run_id() const { return run.id.empty() ? shared_hash().substr(0, 16) : run.id; }

std::string Config::to_toml() const {
  struct Write {
    std::string operator()(bool value) const { return value ? "true" : "false"; }
    std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
    std::string operator()(double value) const {
      const std::string text = fmt::format("{}", value);
      return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
    }
    std::string operator()(const std::string& value) const {
      std::stringstream stream;
      stream << toml::value<std::string>(value);
      return stream.str();
    }
    std::string operator()(const std::vector<std::int64_t>& value) const { return fmt::format("[{}]", fmt::join(value, ", ")); }
    std::string operator()(const std::vector<std::string>& value) const {
      std::vector<std::string> items;
      for (const std::string& item : value) items.push_back((*this)(item));
      return fmt::format("[{}]", fmt::join(items, ", "));
    }
  };
  std::string text;
  for (const Section& section : sections()) {
    const ParameterValues& values = resolved.at(section.name);
    if (values.empty()) continue;
    text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", section.name);
    for (const auto& [key, value] : values) text += fmt::format("{} = {}\n", key, std::visit(Write{}, value));
  }
  return text;
}

}  // namespace gossamer::peer
