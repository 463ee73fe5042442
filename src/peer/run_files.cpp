#include "peer/run_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace gossamer::peer {
namespace {

namespace fs = std::filesystem;

/// k of log-k.jsonl.
std::optional<int> log_number(const fs::path& path) {
  const std::string name = path.filename().string();
  constexpr std::string_view before = "log-", after = ".jsonl";
  if (!name.starts_with(before) || !name.ends_with(after)) return {};
  int number = 0;
  const char* last = name.data() + name.size() - after.size();
  const auto [end, error] = std::from_chars(name.data() + before.size(), last, number);
  if (error != std::errc() || end != last) return {};
  return number;
}

Result<ProcessLog> read_log(const fs::path& path, int number) {
  GOSSAMER_TRY(const std::string content, read_file(path));
  ProcessLog log{number, path, {}, {}};
  std::size_t line_number = 0;
  for (std::size_t begin = 0; begin < content.size();) {
    const std::size_t end = content.find('\n', begin);
    ++line_number;
    if (end == std::string::npos) break;  // torn: never taken for whole
    Json record = Json::parse(content.substr(begin, end - begin), nullptr, false);
    if (!record.is_object() || !record.contains("record"))
      return Error{ErrorKind::data, fmt::format("{}:{}: not a record of a log", path.string(), line_number)};
    if (line_number == 1) log.header = std::move(record);
    else log.records.push_back(std::move(record));
    begin = end + 1;
  }
  if (!log.header.is_object() || log.header["record"] != "header")
    return Error{ErrorKind::data, fmt::format("{}: it does not begin with a header record", path.string())};
  return log;
}

}  // namespace

const Json* ProcessLog::end() const {
  return records.empty() || records.back()["record"] != "end" ? nullptr : &records.back();
}

Result<std::vector<ProcessLog>> read_logs(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> folders{folder};
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.is_directory()) folders.push_back(entry.path());
  if (error)
    return Error{ErrorKind::data, fmt::format("cannot read the run folder {}: {}", folder.string(), error.message())};
  std::vector<ProcessLog> logs;
  for (const fs::path& place : folders)
    for (const auto& entry : fs::directory_iterator(place, error))
      if (const auto number = log_number(entry.path())) {
        GOSSAMER_TRY(ProcessLog log, read_log(entry.path(), *number));
        logs.push_back(std::move(log));
      }
  if (logs.empty())
    return Error{ErrorKind::data, fmt::format("{} holds no run: there is no log-*.jsonl in it", folder.string())};
  std::sort(logs.begin(), logs.end(),
            [](const ProcessLog& a, const ProcessLog& b) { return a.lowest_peer < b.lowest_peer; });
  return logs;
}

}  // namespace gossamer::peer
