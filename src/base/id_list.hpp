// Lists of ids as people write them: "3", "0,1" or "0-3,7".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace gossamer {

/// Ids are 0 … kLargestId.
inline constexpr int kLargestId = 65535;

/// The ids that `text` lists, ascending. `origin`: the option or key, for messages. Error
/// (invalid): not of this form, or an id twice.
Result<std::vector<int>> parse_ids(std::string_view text, const std::string& origin);

/// 0 … count − 1.
std::vector<int> first_ids(int count);

/// The list in its shortest form: "0-3,7". `ids`: ascending.
std::string ids_text(const std::vector<int>& ids);

/// The peers of a process as messages name them: "peer 4", "peers 4, 5" or "peers 0-3, 7". `ids`:
/// ascending.
std::string peers_text(const std::vector<int>& ids);

}  // namespace gossamer
