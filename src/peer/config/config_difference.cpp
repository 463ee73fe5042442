#include "peer/config/config_difference.hpp"

#include <set>

#include "peer/config/sections.hpp"

namespace gossamer::peer {
namespace {

Json value_of(const Json& config, const std::string& section, const std::string& key) {
  const auto found = config.find(section);
  return found != config.end() && found->contains(key) ? found->at(key) : Json();
}

}  // namespace

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
