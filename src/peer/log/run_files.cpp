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

/// Takes over the header, which must match the file's name.
Problem read_header(ProcessLog& log, Json record) {
  if (Problem problem = check_header(record)) return problem;
  log.peers = record.at("peers").get<int>();
  log.servers = record.at("servers").get<int>();
  log.hosted = record.at("hosted").get<std::vector<int>>();
  for (int node : log.hosted)
    if (node < log.peers || log.servers == 1) log.models.push_back(node);
  log.header = std::move(record);
  if (log.hosted.front() == log.lowest_peer) return {};
  return fmt::format("hosted: the lowest node is {}, but by the name of the file it is {}",
                     log.hosted.front(), log.lowest_peer);
}

/// Appends the logs in `folder`, not in its subfolders, to `logs`.
Status read_folder(const fs::path& folder,
                   const std::function<void(const std::string&)>& on_skipped,
                   std::vector<ProcessLog>& logs) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
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
    const std::string message =
        fmt::format("{} ends within its header: its process was killed before it wrote a record",
                    entry.path().string());
    if (!on_skipped) return data_error(message);
    on_skipped(message);
  }
  if (error)
    return data_error(
        fmt::format("cannot read the folder {}: {}", folder.string(), error.message()));
  return {};
}

/// The last line of a file, if it ends with a line end and is no longer than an end record may be.
std::string last_line(const InputFile& file) {
  constexpr std::uint64_t kMost = 4 << 20;
  std::string text(std::min(file.bytes(), kMost), '\0');
  if (!file.read_exactly(file.bytes() - text.size(), text).ok() || !text.ends_with('\n')) return {};
  text.pop_back();
  const std::size_t before = text.rfind('\n');
  return before == std::string::npos ? std::string() : text.substr(before + 1);
}

/// The nodes of a process that has finished the run; none if its log does not say so.
std::vector<int> finished_nodes_of(const fs::path& path, int lowest, const std::string& run_id) {
  auto file = InputFile::open(path);
  if (!file.ok()) return {};
  const std::string end = last_line(*file);
  LineReader lines(std::move(file).value());
  const auto first = lines.next();
  if (!first.ok() || !*first) return {};
  auto header = parse_json(**first), last = parse_json(end);
  ProcessLog log;
  log.lowest_peer = lowest;
  if (!header.ok() || !last.ok() || read_header(log, std::move(header).value())) return {};
  const bool finished = !check_record(*last, log.hosted, log.models.size()) &&
                        last->at("record") == "end" && last->at("reason") == "finished";
  if (!finished || log.header.at("run_id") != run_id) return {};
  return log.hosted;
}

}  // namespace

Result<std::optional<ProcessLog>> read_log(
    const fs::path& path, int lowest,
    const std::function<void(const ProcessLog& log, Json&& record)>& on_record) {
  ProcessLog log;
  log.lowest_peer = lowest;
  log.path = path;
  std::size_t line_number = 0;
  bool ended = false;
  const auto parse_line = [&](std::string_view line) -> Problem {
    auto parsed = parse_json(line);
    if (!parsed.ok()) return parsed.error().message;
    Json record = std::move(*parsed);
    if (log.header.is_null()) return read_header(log, std::move(record));
    if (ended) return "record: there is a record after the end of the log";
    if (Problem problem = check_record(record, log.hosted, log.models.size())) return problem;
    ended = record_type(record) == "end";
    on_record(log, std::move(record));
    return {};
  };
  GOSSAMER_TRY_STATUS(read_lines(path, [&](std::string_view line) -> Status {
    ++line_number;
    if (const Problem problem = parse_line(line))
      return data_error(fmt::format("{}:{}: {}", path.string(), line_number, *problem));
    log.bytes += line.size() + 1;
    return {};
  }));
  if (log.header.is_null()) return std::optional<ProcessLog>();
  return std::optional(std::move(log));
}

const Json* ProcessLog::end() const {
  return records.empty() || record_type(records.back()) != "end" ? nullptr : &records.back();
}

Result<std::vector<ProcessLog>> read_logs(
    const fs::path& folder, const std::function<void(const std::string& message)>& on_skipped) {
  std::error_code error;
  std::vector<fs::path> folders{folder};
  std::error_code ignored;  // an entry that cannot be inspected is not a process's folder
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.is_directory(ignored)) folders.push_back(entry.path());
  if (error)
    return data_error(
        fmt::format("cannot read the run folder {}: {}", folder.string(), error.message()));
  std::vector<ProcessLog> logs;
  for (const fs::path& each : folders) GOSSAMER_TRY_STATUS(read_folder(each, on_skipped, logs));
  if (logs.empty())
    return data_error(fmt::format("{} contains no run: there is no log-*.jsonl with a header in it",
                                  folder.string()));
  std::sort(logs.begin(), logs.end(),
            [](const ProcessLog& a, const ProcessLog& b) { return a.lowest_peer < b.lowest_peer; });
  return logs;
}

std::vector<int> finished_nodes(const fs::path& folder, const std::string& run_id) {
  std::vector<int> finished;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (const auto number = log_number(entry.path()))
      for (const int node : finished_nodes_of(entry.path(), *number, run_id))
        finished.push_back(node);
  std::ranges::sort(finished);
  return finished;
}

}  // namespace gossamer::peer
