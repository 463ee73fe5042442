// Tables on stdout.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace gossamer::cli {

using TableRow = std::vector<std::string>;

/// Prints rows of the same length to stdout. A column is as wide as its widest cell, in characters;
/// the columns of `left` are aligned to the left, the others to the right.
void print_table(const std::vector<TableRow>& rows, const std::set<std::size_t>& left);

}  // namespace gossamer::cli
