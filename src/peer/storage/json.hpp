// The JSON type of logs, summaries and manifests, and how it becomes text.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace gossamer::peer {

/// Keeps the order in which fields were added.
using Json = nlohmann::ordered_json;

/// The value; null if it is NaN or infinite, which JSON cannot represent.
Json finite_or_null(double value);

/// JSON on one line, or indented by `indent` spaces. Bytes that are not UTF-8, as a file name may
/// contain, become U+FFFD, so this never fails.
std::string text_of(const Json& json, int indent = -1);

}  // namespace gossamer::peer
