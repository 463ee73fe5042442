#include "peer/storage/json.hpp"

#include <cmath>

namespace gossamer::peer {

Json finite_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(); }

std::string text_of(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace gossamer::peer
