// Suggestions for a mistyped name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gossamer {

/// The first of the names at the least edit distance from `word`: insertions, deletions,
/// replacements and swaps of neighbouring letters. Empty if this distance is larger than one edit
/// for every three letters of `word`, and larger than 1. Letters are bytes.
std::string nearest_name(std::string_view word, const std::vector<std::string>& names);

/// The end of a message about an unknown `word`: " (did you mean 'ring'?); there are: path, ring",
/// or "; there are: path, ring" if nothing is near.
std::string known_names(std::string_view word, const std::vector<std::string>& names);

}  // namespace gossamer
