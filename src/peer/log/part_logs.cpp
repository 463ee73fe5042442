#include "peer/log/part_logs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "train/split/options.hpp"

namespace gossamer::peer {

std::size_t parts_of(const Json& header) {
  const Json& config = header.at("config");
  const auto split = config.find("split");
  if (split == config.end() || !split->is_object()) return 1;
  const auto number = [&](const char* key, int most) -> std::size_t {
    const auto value = split->find(key);
    if (value == split->end() || !value->is_number_unsigned()) return 1;
    return std::clamp<std::size_t>(value->get<std::size_t>(), 1, static_cast<std::size_t>(most));
  };
  return number("layers", train::SplitOptions::kMostLayers) *
         number("parameters", train::SplitOptions::kMostParameters);
}

Result<std::vector<std::vector<ProcessLog>>> logs_by_part(const std::filesystem::path& folder,
                                                          std::vector<ProcessLog> logs) {
  const bool is_cut = logs.front().header.contains("part");
  std::vector<std::vector<ProcessLog>> by_part(is_cut ? parts_of(logs.front().header) : 1);
  const std::filesystem::path first = logs.front().path;
  for (ProcessLog& log : logs) {
    if (log.header.contains("part") != is_cut || log.part >= static_cast<int>(by_part.size()))
      return data_error(fmt::format(
          "{} and {} are not of one run: their models are cut over processes in other ways",
          first.string(), log.path.string()));
    by_part[static_cast<std::size_t>(log.part)].push_back(std::move(log));
  }
  for (std::size_t part = 0; part < by_part.size(); ++part)
    if (by_part[part].empty())
      return data_error(fmt::format(
          "in {} the files of the workers with part {} of {} are missing; copy their run folders "
          "here",
          folder.string(), part, by_part.size()));
  return by_part;
}

void leave_out(std::vector<std::vector<ProcessLog>>& parts, const std::vector<int>& missing) {
  if (parts.size() == 1) return;
  for (std::vector<ProcessLog>& logs : parts)
    std::erase_if(logs, [&](const ProcessLog& log) {
      return std::ranges::binary_search(missing, log.lowest_peer);
    });
}

}  // namespace gossamer::peer
