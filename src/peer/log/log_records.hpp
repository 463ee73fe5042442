// Checks of log records against docs/log.schema.json. They run once, where a log is read, so that
// later code can rely on each field's presence, type and range.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "peer/storage/json.hpp"

namespace gossamer::peer {

/// The problem of an invalid record, in words that begin with the name of the field; empty if the
/// record is valid.
using Problem = std::optional<std::string>;

/// Checks the first record of a log: schema 1; 1 to 65,535 peers and at most as many servers; the
/// hosted nodes are ascending and exist.
Problem check_header(const Json& record);

/// Checks any later record. `hosted`: the nodes of the process, ascending; `models`: how many of
/// them have a row in the final parameters.
Problem check_record(const Json& record, const std::vector<int>& hosted, std::size_t models);

/// The type of a record: its field "record"; empty if there is none.
std::string record_type(const Json& record);

}  // namespace gossamer::peer
