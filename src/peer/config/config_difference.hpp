// Where two configurations of a run that ought to be the same are not.
#pragma once

#include <optional>
#include <string>

#include "peer/config/config.hpp"
#include "peer/storage/files.hpp"

namespace gossamer::peer {

struct ConfigDifference {
  std::string name;  ///< "section.key"
  Json here, there;  ///< null where a side does not have it
};

/// The first key of the shared sections that has another value; those of `config` that name the
/// run, or say where a machine finds a thing, left out. Both sides are as config_json makes them.
std::optional<ConfigDifference> config_difference(const Config& config, const Json& here,
                                                  const Json& there);

}  // namespace gossamer::peer
