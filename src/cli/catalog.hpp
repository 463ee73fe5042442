// All plug-ins and configuration keys, as the program's reference shows them.
#pragma once

#include <string>
#include <vector>

#include "base/parameter.hpp"

namespace gossamer::cli {

struct CatalogEntry {
  std::string name, summary;
  std::string source;  ///< a paper or an origin; may be empty
  std::vector<ParameterSpec> parameters;
};
/// The kinds that a section's key names, or, in the group `section`, the sections themselves.
struct CatalogGroup {
  std::string name;
  std::vector<CatalogEntry> entries;
};

/// The group of each section that has kinds, by the section's name, then the group `section`.
std::vector<CatalogGroup> catalog();

/// The operators of model files: a group `operator`, whose parameters are no keys of a
/// configuration.
CatalogGroup operators();

}  // namespace gossamer::cli
