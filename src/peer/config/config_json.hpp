// A configuration as JSON, and the first difference between two configurations.
#pragma once

#include <optional>
#include <string>

#include "peer/config/config.hpp"
#include "peer/storage/json.hpp"

namespace gossamer::peer {

Json to_json(const ParameterValue& value);

/// All sections and keys, as in the header of a log.
Json config_json(const Config& config);

struct ConfigDifference {
  std::string name;  ///< "section.key"
  Json here, there;  ///< null if a side does not have the key
};

/// The first key of the shared sections whose value differs. run.id and config.local_keys are not
/// compared. `here` and `there` have the form of config_json().
std::optional<ConfigDifference> config_difference(const Config& config, const Json& here,
                                                  const Json& there);

}  // namespace gossamer::peer
