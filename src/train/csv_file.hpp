// Tables of text with one row per line: CSV as in RFC 4180 (fields in double quotes may hold the
// separator and doubled quotes), but without line breaks within quotes, and with any separator.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace gossamer::train {

/// The fields of one line, without blanks around them.
struct CsvRow {
  std::size_t line = 0;  ///< in the file, from 1
  std::vector<std::string> fields;
};

/// Calls `take` for each line that is not blank, in order, until `take` fails. A byte order mark
/// and carriage returns at line ends are skipped. Memory: one line. Errors: those of `take`; those
/// of LineReader; (data, beginning with the path) gzip or UTF-16; and (data, beginning with the
/// path and the line) a byte 0, more than kMaxCsvFields fields, a quote that is not closed, or text
/// after a closing quote.
Status read_csv(const std::filesystem::path& path, char separator,
                const std::function<Status(const CsvRow&)>& take);
inline constexpr std::size_t kMaxCsvFields = 65'536;

/// The finite number that the whole text denotes, 0 if it is too small for a double; empty if it
/// denotes none.
std::optional<double> finite_number(std::string_view text);

}  // namespace gossamer::train
