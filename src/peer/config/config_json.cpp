#include "peer/config/config_json.hpp"

#include <set>

#include "peer/config/sections.hpp"

namespace gossamer::peer {
namespace {

Json value_of(const Json& config, const std::string& section, const std::string& key) {
  const auto found = config.find(section);
  return found != config.end() && found->contains(key) ? found->at(key) : Json();
}

}  // namespace

Json to_json(const ParameterValue& value) {
  return std::visit([](const auto& content) { return Json(content); }, value);
}

Json config_json(const Config& config) {
  Json json;
  for (const auto& [section, values] : config.resolved) {
    json[section] = Json::object();
    for (const auto& [key, value] : values) json[section][key] = to_json(value);
  }
  return json;
}

std::optional<ConfigDifference> config_difference(const Config& config, const Json& here,
                                                  const Json& there) {
  for (const Section& section : sections()) {
    if (!section.shared) continue;
    std::set<std::string> keys;
    for (const Json* side : {&here, &there})
      if (const auto found = side->find(section.name); found != side->end())
        for (const auto& [key, value] : found->items()) keys.insert(key);
    for (const std::string& key : keys) {
      ConfigDifference difference{section.name + "." + key, value_of(here, section.name, key),
                                  value_of(there, section.name, key)};
      if (difference.here == difference.there || difference.name == "run.id" ||
          config.local_keys.contains(difference.name))
        continue;
      return difference;
    }
  }
  return {};
}

}  // namespace gossamer::peer
