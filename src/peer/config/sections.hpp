// The sections of a configuration: the keys of each section, and the catalog of its kinds. Internal
// to config.cpp and config_json.cpp.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "peer/config/config.hpp"

namespace gossamer::peer {

const ParameterSet<RunOptions>& run_parameters();
const ParameterSet<PolicyOptions>& policy_parameters();
const ParameterSet<AttackOptions>& attack_parameters();
const ParameterSet<SimOptions>& sim_parameters();
const ParameterSet<LocalOptions>& local_parameters();
const ParameterSet<LogOptions>& log_parameters();
const ParameterSet<CheckpointOptions>& checkpoint_parameters();

/// The name and parameters of a plug-in.
struct KindSpec {
  std::string name;
  std::vector<ParameterSpec> parameters;
  bool open = false;  ///< takes keys of other names too, for a program that reads them
};

struct Section {
  std::string name;
  std::string summary;
  std::vector<ParameterSpec> keys = {};                 ///< common to all kinds
  std::string default_kind = {};                        ///< empty: the section has no kind
  std::string kind_key = "kind";                        ///< the key that names the kind
  std::function<std::vector<KindSpec>()> catalog = {};  ///< empty: the section has no kind
  bool shared = false;                                  ///< hashed: must be the same for all peers
};

/// All sections, in the order in which they are written to a file.
const std::vector<Section>& sections();

}  // namespace gossamer::peer
