// Reading TOML files, which may be damaged or hostile.
#pragma once

#include <toml++/toml.h>

#include <cstdint>
#include <string>

#include "base/parameter.hpp"
#include "base/result.hpp"

namespace gossamer {

inline constexpr std::uint64_t kMaxTomlBytes = 2 << 20;  ///< typical: a few hundred

/// Parses a file of at most kMaxTomlBytes. Errors: (data) the file cannot be read; (invalid) it is
/// not TOML, with the file and the line.
Result<toml::table> read_toml_file(const std::string& path);

/// "run.toml:12", the place of a value.
std::string place_of(const std::string& path, const toml::node& node);

/// A boolean, a number, a text, or a list of integers or texts. The error (invalid) does not name
/// the place.
Result<ParameterValue> parameter_value(const toml::node& node);

}  // namespace gossamer
