// The fields of records of logs that a view of a run reads. The records were checked
// (peer/log/log_records.hpp), or were just made.
#pragma once

#include <cstdint>
#include <string>

#include "peer/storage/json.hpp"
#include "peer/watch/figures.hpp"

namespace gossamer::peer {

/// kNotKnown where the field is null or missing.
double number(const Json& record, const char* field);
/// 0 where the field is missing.
std::uint64_t count(const Json& record, const char* field);
/// Takes over what a round or server record has of its node. Returns the bytes that the node has
/// sent since the record before, or since it counts from 0 again.
std::uint64_t take_record(const Json& record, NodeFigures& node);
/// What a membership record says, as a clause that follows the peer's name.
std::string event_text(const Json& record);

}  // namespace gossamer::peer
