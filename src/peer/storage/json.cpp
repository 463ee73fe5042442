#include "peer/storage/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace gossamer::peer {

Json finite_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Status check_json_limits(std::string_view text, const JsonLimits& limits) {
  struct Container {
    bool object;
    std::size_t commas = 0;
  };
  constexpr std::size_t kOfObject = 3, kOfText = 5, kBytesOfValue = 16;
  std::vector<Container> open;
  std::size_t values = 1;
  std::size_t text_began = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
        values += kOfText + (i - text_began) / kBytesOfValue;
      }
      continue;
    }
    if (c == '"') {
      in_string = true;
      text_began = i;
    } else if (c == ':') {
      values -= std::min(values, kOfText);  // the text was a name, which is part of a field
    } else if (c == '[' || c == '{') {
      open.push_back({c == '{'});
      values += c == '{' ? 1 + kOfObject : 1;
      if (open.size() > static_cast<std::size_t>(limits.depth))
        return data_error(fmt::format("JSON nested more than {} levels deep", limits.depth));
    } else if ((c == ']' || c == '}') && !open.empty()) {
      open.pop_back();
    } else if (c == ',' && !open.empty()) {
      ++values;
      if (open.back().object && ++open.back().commas >= limits.object_fields)
        return data_error(
            fmt::format("a JSON object of more than {} fields", limits.object_fields));
    }
    if (values > limits.values)
      return data_error(fmt::format("JSON of more than {} values", limits.values));
  }
  return {};
}

Result<Json> parse_json(std::string_view text) {
  GOSSAMER_TRY_STATUS(check_json_limits(text));
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return data_error("not JSON");
  return json;
}

std::string text_of(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace gossamer::peer
