// The records of a log as its readers may rely on them: docs/log.schema.json, checked once where a
// log is read, so that nothing behind it meets a field that is missing, of another type, or out of
// range.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "peer/storage/files.hpp"

namespace gossamer::peer {

/// What is wrong with a record, in words that begin with the field's name; nothing where it is
/// whole.
using Fault = std::optional<std::string>;

/// The first record of a log: schema 1, a network of 1 to 65,535 peers and perhaps servers, hosted
/// nodes ascending and of them.
Fault header_fault(const Json& record);

/// A later record: round, server, network, membership or end. `hosted`: the nodes of the log's
/// process, ascending; `models` of them have a row in its final parameters.
Fault record_fault(const Json& record, const std::vector<int>& hosted, std::size_t models);

/// The record's sort: its field "record"; empty where it is no object or has none.
std::string sort_of(const Json& record);

}  // namespace gossamer::peer
