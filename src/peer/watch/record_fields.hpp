// The fields of records of logs that a view of a run reads. The records were checked
// (peer/log/log_records.hpp), or were just made.
#pragma once

#include <cstdint>
#include <string>

#include "peer/storage/json.hpp"

namespace gossamer::peer {

/// kNotKnown where the field is null or missing.
double number(const Json& record, const char* field);
/// 0 where the field is missing.
std::uint64_t count(const Json& record, const char* field);
/// What a membership record says, as a clause that follows the peer's name.
std::string event_text(const Json& record);

}  // namespace gossamer::peer
