#include "peer/config/config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <optional>
#include <set>

#include "base/hash.hpp"
#include "base/suggestion.hpp"
#include "base/toml_file.hpp"
#include "peer/config/hostile_peers.hpp"
#include "peer/config/sections.hpp"

namespace gossamer::peer {
namespace {

namespace fs = std::filesystem;

/// An unchecked value and its origin. Values from TOML have a type; values from --set are text
/// until their key is known.
struct RawValue {
  std::optional<ParameterValue> value;
  std::string text;
  std::string origin;  ///< "run.toml:12" or "--set …"
  fs::path folder;     ///< base of relative paths: the file's folder, or the working directory
  std::optional<ParameterValue> replaced = {};  ///< the file's value, where --set replaces it
};
using RawSection = std::map<std::string, RawValue>;
using RawConfig = std::map<std::string, RawSection>;

/// The section called `name`, or an error that lists them.
Result<const Section*> find_section(const std::string& origin, const std::string& name) {
  std::vector<std::string> names;
  for (const Section& section : sections()) {
    if (section.name == name) return &section;
    names.push_back(section.name);
  }
  return invalid_error(
      fmt::format("{}: unknown section [{}]{}", origin, name, known_names(name, names)));
}

bool holds_tables(const toml::node& node) {
  const toml::array* list = node.as_array();
  return list != nullptr && std::any_of(list->begin(), list->end(),
                                        [](const toml::node& item) { return item.is_table(); });
}

/// net.peers as a list of {address = …, key = …}: the values of net.peers and net.keys.
Status read_peers(const std::string& file, const toml::array& list, const RawValue& entry,
                  RawSection& net) {
  std::vector<std::string> addresses, keys;
  for (const toml::node& item : list) {
    const toml::table* table = item.as_table();
    const auto text = [table](const char* name) {
      return table == nullptr ? std::nullopt : (*table)[name].value_exact<std::string>();
    };
    const auto address = text("address"), key = text("key");
    if (!address || !key || table->size() != 2)
      return invalid_error(
          fmt::format("{}: net.peers: each entry is a text, or each is {{address = \"host:port\", "
                      "key = \"…\"}}; gossamer keygen prints the key",
                      place_of(file, item)));
    addresses.push_back(*address);
    keys.push_back(*key);
  }
  if (net.contains("keys"))
    return invalid_error(entry.origin + ": net.peers gives the keys that net.keys gives too");
  net["peers"] = net["keys"] = entry;
  net["peers"].value = std::move(addresses);
  net["keys"].value = std::move(keys);
  return {};
}

Status read_section(const std::string& file, const std::string& name, const toml::node& node,
                    RawConfig& raw) {
  const std::string origin = place_of(file, node);
  GOSSAMER_TRY_STATUS([&]() -> Status {
    auto section = find_section(origin, name);
    return section.ok() ? Status() : Status(section.error());
  }());
  const toml::table* table = node.as_table();
  if (table == nullptr)
    return invalid_error(
        fmt::format("{}: {} is a section: write [{}] above its keys", origin, name, name));
  for (const auto& [key, value] : *table) {
    RawValue entry;
    entry.origin = place_of(file, value);
    entry.folder = fs::path(file).parent_path();
    if (name == "net" && key.str() == "peers" && holds_tables(value)) {
      GOSSAMER_TRY_STATUS(read_peers(file, *value.as_array(), entry, raw[name]));
      continue;
    }
    auto parsed = parameter_value(value);
    if (!parsed.ok())
      return invalid_error(
          fmt::format("{}: {}.{}: {}", entry.origin, name, key.str(), parsed.error().message));
    entry.value = std::move(parsed).value();
    raw[name][std::string(key.str())] = std::move(entry);
  }
  return {};
}

Result<RawConfig> read_toml(const std::string& path) {
  GOSSAMER_TRY(const toml::table root, read_toml_file(path));
  RawConfig raw;
  for (const auto& [name, node] : root)
    GOSSAMER_TRY_STATUS(read_section(path, std::string(name.str()), node, raw));
  return raw;
}

Status apply_override(const Override& override, RawConfig& raw) {
  const std::size_t equals = override.find('='), dot = override.find('.');
  if (equals == std::string::npos || dot == std::string::npos || dot > equals)
    return invalid_error(fmt::format("--set {}: write it as section.key=value", override));
  const std::string section = override.substr(0, dot),
                    key = override.substr(dot + 1, equals - dot - 1);
  auto known = find_section("--set " + override, section);
  if (!known.ok()) return known.error();
  // An address has no '=', unlike {address = …, key = …}.
  if (section == "net" && key == "peers" && override.find('=', equals + 1) != std::string::npos)
    return invalid_error(fmt::format(
        "--set {}: net.peers is a list of addresses here; give the keys as net.keys", override));
  RawValue& entry = raw[section][key];
  std::optional<ParameterValue> replaced = entry.value ? entry.value : entry.replaced;
  entry = {std::nullopt, override.substr(equals + 1), "--set " + override, {}, std::move(replaced)};
  return {};
}

/// The kind that a section names, which must be in its catalog.
Result<KindSpec> chosen_kind(const Section& section, const RawSection& raw) {
  std::string kind = section.default_kind, prefix;
  if (const auto found = raw.find(section.kind_key); found != raw.end()) {
    const RawValue& entry = found->second;
    prefix = entry.origin + ": ";
    if (entry.value && !std::holds_alternative<std::string>(*entry.value))
      return invalid_error(fmt::format("{}{}.{}: '{}' is not a text", prefix, section.name,
                                       section.kind_key, to_string(*entry.value)));
    kind = entry.value ? std::get<std::string>(*entry.value) : entry.text;
  }
  std::vector<std::string> names;
  for (KindSpec& spec : section.catalog()) {
    if (spec.name == kind) return std::move(spec);
    names.push_back(spec.name);
  }
  return invalid_error(fmt::format("{}{}.{}: there is no '{}'{}", prefix, section.name,
                                   section.kind_key, kind, known_names(kind, names)));
}

/// The checked values of a section, with defaults.
struct SectionValues {
  std::string kind;
  ParameterValues common;     ///< of the section's own keys
  ParameterValues kind_keys;  ///< of the kind's parameters
  ParameterValues all;
  std::vector<std::string> local;  ///< keys that only say where this machine has a file
};

/// The path made absolute, so that a resolved configuration can be moved to another folder.
ParameterValue absolute_path(const fs::path& folder, const ParameterValue& value) {
  const auto& text = std::get<std::string>(value);
  if (text.empty()) return value;
  return fs::absolute(folder / text).lexically_normal().string();
}

ParameterType type_of(const ParameterValue& value) {
  return static_cast<ParameterType>(value.index());
}

/// A value of a key that has no declaration. A text of --set is read as the type that the key has
/// in the file; without one, as a boolean, an integer or a real if it is one.
Result<ParameterValue> undeclared_value(const std::string& key, const RawValue& entry) {
  const bool bare = std::all_of(key.begin(), key.end(), [](unsigned char c) {
    return c < 128 && (std::isalnum(c) != 0 || c == '_' || c == '-');
  });
  if (key.empty() || !bare)
    return invalid_error("a key of the task has letters, digits, '_' and '-' only");
  if (entry.value) return *entry.value;
  if (entry.replaced)
    return parse_value({key, type_of(*entry.replaced), *entry.replaced, {}}, entry.text);
  for (const auto& [type, value] : {std::pair{ParameterType::boolean, ParameterValue(false)},
                                    {ParameterType::integer, ParameterValue(std::int64_t{0})},
                                    {ParameterType::real, ParameterValue(0.0)}})
    if (auto parsed = parse_value({key, type, value, {}}, entry.text); parsed.ok()) return parsed;
  return check_value({key, ParameterType::text, ParameterValue(std::string()), {}}, entry.text);
}

Result<SectionValues> read_values(const Section& section, const RawSection& raw) {
  SectionValues read;
  KindSpec kind;
  if (section.catalog) {
    GOSSAMER_TRY(kind, chosen_kind(section, raw));
    read.kind = kind.name;
    read.all[section.kind_key] = kind.name;
  }
  std::set<std::string> known{section.kind_key};
  const auto read_keys = [&](const std::vector<ParameterSpec>& specs,
                             ParameterValues& into) -> Status {
    for (const ParameterSpec& spec : specs) {
      known.insert(spec.name);
      into[spec.name] = spec.default_value;
      if (const auto found = raw.find(spec.name); found != raw.end()) {
        const RawValue& entry = found->second;
        auto value = entry.value ? check_value(spec, *entry.value) : parse_value(spec, entry.text);
        if (value.ok() && spec.notes.path)
          value = check_value(spec, absolute_path(entry.folder, *value));
        if (!value.ok())
          return invalid_error(fmt::format("{}: {}.{}: {}", entry.origin, section.name, spec.name,
                                           value.error().message));
        into[spec.name] = std::move(value).value();
      }
      if (spec.notes.local) read.local.push_back(spec.name);
      read.all[spec.name] = into[spec.name];
    }
    return {};
  };
  GOSSAMER_TRY_STATUS(read_keys(section.keys, read.common));
  GOSSAMER_TRY_STATUS(read_keys(kind.parameters, read.kind_keys));
  if (!section.catalog) known.erase(section.kind_key);
  for (const auto& [key, entry] : raw) {
    if (known.contains(key)) continue;
    if (!kind.open)
      return invalid_error(fmt::format(
          "{}: {}.{}: unknown{}{}", entry.origin, section.name, key,
          read.kind.empty() ? "" : fmt::format(" for {} {}", section.kind_key, read.kind),
          known_names(key, {known.begin(), known.end()})));
    auto value = undeclared_value(key, entry);
    if (!value.ok())
      return invalid_error(
          fmt::format("{}: {}.{}: {}", entry.origin, section.name, key, value.error().message));
    read.all[key] = read.kind_keys[key] = std::move(value).value();
  }
  return read;
}

/// Settings of data that a program's own data have too: the weights of the peers' data, whose sizes
/// the program states, and the validation samples that it holds out.
constexpr std::array kProgramData{"weights", "validation", "evaluate"};

/// The program that brings a model also brings data and optimizer: a setting of ours for them would
/// have no effect.
Status check_unused(const Section& section, const SectionValues& values) {
  const auto fault = [&section](const std::string& key) {
    return invalid_error(
        fmt::format("{}.{}: has no effect with model.kind = external, whose program brings its own "
                    "data and optimizer; remove it",
                    section.name, key));
  };
  if (values.kind != section.default_kind) return fault(section.kind_key);
  std::vector<ParameterSpec> specs = section.keys;
  for (const KindSpec& kind : section.catalog())
    if (kind.name == values.kind)
      specs.insert(specs.end(), kind.parameters.begin(), kind.parameters.end());
  for (const ParameterSpec& spec : specs)
    if (std::ranges::find(kProgramData, spec.name) == kProgramData.end() &&
        values.all.at(spec.name) != spec.default_value)
      return fault(spec.name);
  return {};
}

/// The text as a TOML basic string.
std::string toml_string(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += std::string("\\") + c;
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F)
      result += fmt::format("\\u{:04X}", static_cast<unsigned>(c));
    else result += c;
  }
  return result + "\"";
}

/// With attack.fraction, names the peers of it in attack.peers, for the log and all that reads it.
Status draw_hostile_peers(Config& config) {
  AttackOptions& attack = config.attack.options;
  if (config.attack.kind == "none" || attack.fraction == 0) return {};
  GOSSAMER_TRY(attack.peers,
               hostile_peers_of(attack.fraction, config.run.peers, config.run.seed, attack.peers));
  config.resolved["attack"]["peers"] =
      std::vector<std::int64_t>(attack.peers.begin(), attack.peers.end());
  return {};
}

/// The run id is also used as a file name and in messages between processes.
Status check_run_id(const std::string& id) {
  const bool plain = std::all_of(id.begin(), id.end(), [](unsigned char c) {
    return c < 128 && (std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-');
  });
  if (plain && id.size() <= 63 && !id.starts_with('.')) return {};
  return invalid_error(
      "run.id: use at most 63 letters, digits, '.', '_' and '-', and do not begin with '.'");
}

}  // namespace

Result<Config> load_config(const std::string& path, const std::vector<Override>& overrides) {
  RawConfig raw;
  if (!path.empty()) {
    GOSSAMER_TRY(raw, read_toml(path));
  }
  for (const Override& override : overrides) GOSSAMER_TRY_STATUS(apply_override(override, raw));

  Config config;
  std::map<std::string, SectionValues> read;
  for (const Section& section : sections()) {
    GOSSAMER_TRY(SectionValues values, read_values(section, raw[section.name]));
    config.resolved[section.name] = values.all;
    for (const std::string& key : values.local) config.local_keys.insert(section.name + "." + key);
    read[section.name] = std::move(values);
  }
  if (read["model"].kind == kExternalModel)
    for (const Section& section : sections())
      if (section.name == "data" || section.name == "optimizer")
        GOSSAMER_TRY_STATUS(check_unused(section, read[section.name]));
  GOSSAMER_TRY(config.run, run_parameters().read("run", read["run"].common));
  GOSSAMER_TRY_STATUS(check_run_id(config.run.id));
  GOSSAMER_TRY(config.topology.weights,
               topology::weight_parameters().read("topology", read["topology"].common));
  GOSSAMER_TRY(config.exchange, policy_parameters().read("algorithm", read["algorithm"].common));
  GOSSAMER_TRY(config.attack.options, attack_parameters().read("attack", read["attack"].common));
  GOSSAMER_TRY(config.shards, train::shard_parameters().read("data", read["data"].common));
  const SectionValues& optimizer = read["optimizer"];
  GOSSAMER_TRY(config.optimizer,
               train::make_optimizer(optimizer.kind, optimizer.kind_keys, optimizer.common));
  GOSSAMER_TRY(config.model.split, train::split_parameters().read("split", read["split"].common));
  if (config.model.split.cuts == std::vector<std::string>{"auto"}) config.model.split.cuts.clear();
  GOSSAMER_TRY(config.optimizer.privacy,
               train::privacy_parameters().read("privacy", read["privacy"].common));
  GOSSAMER_TRY(config.sim, sim_parameters().read("sim", read["sim"].common));
  GOSSAMER_TRY(config.net, net::net_parameters().read("net", read["net"].common));
  GOSSAMER_TRY(config.local, local_parameters().read("local", read["local"].common));
  GOSSAMER_TRY(config.log, log_parameters().read("log", read["log"].common));
  GOSSAMER_TRY(config.checkpoint,
               checkpoint_parameters().read("checkpoint", read["checkpoint"].common));
  const std::pair<const char*, PluginChoice*> choices[] = {
      {"topology", &config.topology}, {"algorithm", &config.algorithm}, {"codec", &config.codec},
      {"mixing", &config.mixing},     {"attack", &config.attack},       {"model", &config.model},
      {"data", &config.data}};
  for (const auto& [name, choice] : choices) *choice = {read[name].kind, read[name].kind_keys};
  GOSSAMER_TRY_STATUS(draw_hostile_peers(config));
  return config;
}

std::string Config::shared_settings() const {
  std::string text;
  for (const Section& section : sections()) {
    if (!section.shared) continue;
    for (const auto& [key, value] : resolved.at(section.name))
      if (const std::string name = section.name + "." + key;
          name != "run.id" && !local_keys.contains(name))
        text += fmt::format("{}={}\n", name, to_string(value));
  }
  return text;
}

std::string Config::shared_hash() const { return hash_hex(shared_settings()); }

std::string Config::run_id() const { return run.id.empty() ? shared_hash().substr(0, 16) : run.id; }

std::string Config::to_toml() const {
  struct Write {
    std::string operator()(bool value) const { return value ? "true" : "false"; }
    std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
    std::string operator()(double value) const {
      const std::string text = fmt::format("{}", value);
      return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
    }
    std::string operator()(const std::string& value) const { return toml_string(value); }
    std::string operator()(const std::vector<std::int64_t>& value) const {
      return fmt::format("[{}]", fmt::join(value, ", "));
    }
    std::string operator()(const std::vector<std::string>& value) const {
      std::vector<std::string> items;
      for (const std::string& item : value) items.push_back(toml_string(item));
      return fmt::format("[{}]", fmt::join(items, ", "));
    }
  };
  std::string text;
  for (const Section& section : sections()) {
    const ParameterValues& values = resolved.at(section.name);
    if (values.empty()) continue;
    text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", section.name);
    for (const auto& [key, value] : values)
      text += fmt::format("{} = {}\n", key, std::visit(Write{}, value));
  }
  return text;
}

}  // namespace gossamer::peer
