// The JSON type of logs, summaries and manifests, and how it becomes text.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace gossamer::peer {

/// Keeps the order in which fields were added.
using Json = nlohmann::ordered_json;

/// Limits on JSON text from a file or a peer, which bound the memory and the stack that its value
/// takes.
struct JsonLimits {
  int depth = 32;  ///< arrays and objects within each other
  /// Values in all, of about 16 bytes each: an object takes as much memory as three more, and a
  /// text, which is no name of a field, as five more and its bytes.
  std::size_t values = 4'000'000;
  std::size_t object_fields =
      4096;  ///< fields of one object: Json compares each with all before it
};
/// Errors (data): the text goes beyond a limit, which the message names. A text that is not JSON
/// may pass. Time: linear in the text.
Status check_json_limits(std::string_view text, const JsonLimits& limits = {});
/// The value of a text. Errors (data): as of check_json_limits, or "not JSON".
Result<Json> parse_json(std::string_view text);

/// The value; null if it is NaN or infinite, which JSON cannot represent.
Json finite_or_null(double value);

/// JSON on one line, or indented by `indent` spaces. Bytes that are not UTF-8, as a file name may
/// contain, become U+FFFD, so this never fails.
std::string text_of(const Json& json, int indent = -1);

}  // namespace gossamer::peer
