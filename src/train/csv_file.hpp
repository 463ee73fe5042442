// Tables of text, one line a row: CSV as RFC 4180 has it (fields in double quotes may hold the
// separator and doubled quotes), but for line breaks within quotes, and with any separator.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace gossamer::train {

/// One line's fields, blanks around them cut off.
struct CsvRow {
  std::size_t line = 0;  ///< in the file, from 1
  std::vector<std::string> fields;
};

/// Calls `take` for each line that is not blank, in order, until it fails. A byte order mark and
/// carriage returns at the ends of lines are skipped. Errors of this function's own (kind data) say
/// `name`:line: a quote that is not closed, or text behind a closed one.
Status read_csv(const std::string& name, std::string_view text, char separator,
                const std::function<Status(const CsvRow&)>& take);

/// The finite number that the text is, whole; none where it is anything else.
std::optional<double> finite_number(std::string_view text);

}  // namespace gossamer::train
