#include "peer/log/run_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "peer/log/log_records.hpp"

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

/// What the header says, which must fit the file's name.
Fault take_header(ProcessLog& log, Json record) {
  if (Fault fault = header_fault(record)) return fault;
  log.peers = record.at("peers").get<int>();
  log.servers = record.at("servers").get<int>();
  log.hosted = record.at("hosted").get<std::vector<int>>();
  for (int node : log.hosted)
    if (node < log.peers || log.servers == 1) log.models.push_back(node);
  log.header = std::move(record);
  if (log.hosted.front() == log.lowest_peer) return {};
  return fmt::format("hosted: the lowest is peer {}, by the file's name it is {}",
                     log.hosted.front(), log.lowest_peer);
}

/// Puts the logs in `place` with `logs`.
Status read_place(const fs::path& place, const std::function<void(const std::string&)>& left_out,
                  std::vector<ProcessLog>& logs) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(place, error)) {
    const auto number = log_number(entry.path());
    if (!number) continue;
    std::vector<Json> records;
    GOSSAMER_TRY(std::optional<ProcessLog> log, read_log(
                                                    entry.path(), *number,
                                                    [&](const ProcessLog&, Json&& record) {
                                                      records.push_back(std::move(record));
                                                    }));
    if (log) {
      log->records = std::move(records);
      logs.push_back(std::move(*log));
      continue;
    }
    const std::string message = fmt::format(
        "{} is cut within its header: that process wrote nothing", entry.path().string());
    if (!left_out) return Error{ErrorKind::data, message};
    left_out(message);
  }
  if (error)
    return Error{ErrorKind::data,
                 fmt::format("cannot read the folder {}: {}", place.string(), error.message())};
  return {};
}

}  // namespace

Result<std::optional<ProcessLog>> read_log(
    const fs::path& path, int lowest,
    const std::function<void(const ProcessLog& log, Json&& record)>& take) {
  ProcessLog log;
  log.lowest_peer = lowest;
  log.path = path;
  std::size_t line_number = 0;
  bool ended = false;
  const auto take_line = [&](std::string_view line) -> Fault {
    Json record = Json::parse(line, nullptr, false);
    if (record.is_discarded()) return "not JSON";
    if (log.header.is_null()) return take_header(log, std::move(record));
    if (ended) return "record: there is one behind the log's end";
    if (Fault fault = record_fault(record, log.hosted, log.models.size())) return fault;
    ended = sort_of(record) == "end";
    take(log, std::move(record));
    return {};
  };
  GOSSAMER_TRY_STATUS(read_lines(path, [&](std::string_view line) -> Status {
    ++line_number;
    if (const Fault fault = take_line(line))
      return Error{ErrorKind::data, fmt::format("{}:{}: {}", path.string(), line_number, *fault)};
    log.bytes += line.size() + 1;
    return {};
  }));
  if (log.header.is_null()) return std::optional<ProcessLog>();
  return std::optional(std::move(log));
}

const Json* ProcessLog::end() const {
  return records.empty() || sort_of(records.back()) != "end" ? nullptr : &records.back();
}

Result<std::vector<ProcessLog>> read_logs(
    const fs::path& folder, const std::function<void(const std::string& message)>& left_out) {
  std::error_code error;
  std::vector<fs::path> folders{folder};
  std::error_code ignored;  // what cannot be looked at is no folder of a process
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.is_directory(ignored)) folders.push_back(entry.path());
  if (error)
    return Error{ErrorKind::data, fmt::format("cannot read the run folder {}: {}", folder.string(),
                                              error.message())};
  std::vector<ProcessLog> logs;
  for (const fs::path& place : folders) GOSSAMER_TRY_STATUS(read_place(place, left_out, logs));
  if (logs.empty())
    return Error{ErrorKind::data,
                 fmt::format("{} holds no run: there is no log-*.jsonl with a header in it",
                             folder.string())};
  std::sort(logs.begin(), logs.end(),
            [](const ProcessLog& a, const ProcessLog& b) { return a.lowest_peer < b.lowest_peer; });
  return logs;
}

}  // namespace gossamer::peer
