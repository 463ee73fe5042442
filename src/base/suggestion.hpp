// What a person who mistyped a name may have meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gossamer {

/// The name that `word` is most likely a misspelling of: the first of those that take the fewest
/// insertions, deletions, replacements and swaps of neighbouring letters; empty if none takes at
/// most one of these for every three letters of `word`, and at least one. Letters are bytes.
std::string nearest_name(std::string_view word, const std::vector<std::string>& names);

/// The end of a message about an unknown `word`: " (did you mean 'ring'?); there are: path, ring",
/// or "; there are: path, ring" if nothing is near.
std::string known_names(std::string_view word, const std::vector<std::string>& names);

}  // namespace gossamer
