// The configuration's sections: which keys each has, and which catalog its `kind` chooses from.
// Internal to the configuration.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "peer/config/config.hpp"

namespace gossamer::peer {

const ParameterSet<RunOptions>& run_parameters();
const ParameterSet<ExchangeChoice>& exchange_parameters();
const ParameterSet<SimOptions>& sim_parameters();
const ParameterSet<LocalOptions>& local_parameters();
const ParameterSet<LogOptions>& log_parameters();
const ParameterSet<CheckpointOptions>& checkpoint_parameters();

/// A plug-in kind as the configuration sees it.
struct KindSpec {
  std::string name;
  std::vector<ParameterSpec> parameters;
};

struct Section {
  std::string name;
  std::string summary;
  std::vector<ParameterSpec> keys = {};                 ///< common to all kinds
  std::string default_kind = {};                        ///< empty: the section has no kind
  std::function<std::vector<KindSpec>()> catalog = {};  ///< where it has one
  bool shared = false;                                  ///< hashed: every peer must agree
};

/// All sections, in the order in which they are written.
const std::vector<Section>& sections();

}  // namespace gossamer::peer
