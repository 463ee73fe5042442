#include "peer/setup/hosted_ids.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

namespace gossamer::peer {
namespace {

/// Environment variables in which launchers set the rank of a process, in order of precedence.
constexpr const char* kIdVariables[] = {"GOSSAMER_ID", "RANK", "SLURM_PROCID",
                                        "OMPI_COMM_WORLD_RANK", "PMI_RANK"};

bool read_id(std::string_view text, int& number) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failure == std::errc() && end == text.data() + text.size() && number >= 0 &&
         number < 65536;
}

/// Parses the peers of this process: "3", "0,1" or "0-3".
Result<std::vector<int>> read_ids(const std::string& text, const std::string& origin) {
  const Error error{
      ErrorKind::invalid,
      fmt::format("{}: '{}' is not a peer id; use the form 3, 0,1 or 0-3", origin, text)};
  std::vector<int> ids;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view item = std::string_view(text).substr(begin, end - begin);
    const std::size_t dash = item.find('-');
    int first = 0, last = 0;
    if (!read_id(item.substr(0, dash), first)) return error;
    last = first;
    if (dash != std::string_view::npos && (!read_id(item.substr(dash + 1), last) || last < first))
      return error;
    for (int id = first; id <= last; ++id) ids.push_back(id);
    begin = end + 1;
  }
  std::sort(ids.begin(), ids.end());
  if (const auto twice = std::adjacent_find(ids.begin(), ids.end()); twice != ids.end())
    return invalid_error(fmt::format("{}: '{}' names peer {} twice", origin, text, *twice));
  return ids;
}

}  // namespace

Result<std::vector<int>> find_hosted_ids(const std::string& option, const std::string& origin,
                                         const Environment& environment) {
  if (!option.empty()) return read_ids(option, origin);
  for (const char* variable : kIdVariables)
    if (const char* value = environment(variable)) return read_ids(value, variable);
  return invalid_error(
      fmt::format("the id of this peer is missing: give {}, or set GOSSAMER_ID (RANK, "
                  "SLURM_PROCID, OMPI_COMM_WORLD_RANK and PMI_RANK are read too)",
                  origin));
}

}  // namespace gossamer::peer
