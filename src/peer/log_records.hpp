// The records of a log as its readers may rely on them: docs/log.schema.json, checked once where a log is read, so that
// nothing behind it meets a field that is missing, of another type, or out of range.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "peer/files.hpp"

namespace gossamer::peer {

/// What is wrong with a record, in words that begin with the field's name; nothing where it is whole.
using Fault = std::optional<std::string>;

/// The first record of a log: schema 1, a network of 1 to 65,535 peers, hosted peers ascending and below that.
Fault header_fault(const Json& record);

/// A later record: round, network or end. `hosted`: the peers of the log's process, ascending.
Fault record_fault(const Json& record, const std::vector<int>& hosted);

/// The record's sort: its field "record"; empty where it is no object or has none.
std::string sort_of(const Json& record);

}  // namespace gossamer::peer
