#include "peer/log/run_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
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
  log.part = record.value("part", 0);
  log.hosted = record.at("hosted").get<std::vector<int>>();
  for (int node : log.hosted)
    if (node < log.peers || log.servers == 1) log.models.push_back(node);
  log.header = std::move(record);
  if (log.hosted.front() == log.lowest_peer) return {};
  return fmt::format("hosted: the lowest node is {}, but by the name of the file it is {}",
                     log.hosted.front(), log.lowest_peer);
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

/// A log of the run `run_id`, of which only the header is read.
std::optional<ProcessLog> header_of(const fs::path& path, int lowest, const std::string& run_id) {
  auto file = InputFile::open(path);
  if (!file.ok()) return {};
  LineReader lines(std::move(file).value());
  const auto first = lines.next();
  if (!first.ok() || !*first) return {};
  auto header = parse_json(**first);
  ProcessLog log;
  log.path = path;
  log.lowest_peer = lowest;
  if (!header.ok() || read_header(log, std::move(header).value())) return {};
  if (log.header.at("run_id") != run_id) return {};
  return log;
}

/// Whether each node of the log has a record of round `rounds`.
bool has_round_of_each(const ProcessLog& log, std::uint64_t rounds) {
  std::map<int, std::uint64_t> newest;
  const auto read =
      read_log(log.path, log.lowest_peer, [&newest](const ProcessLog&, Json&& record) {
        if (record_type(record) == "round") newest[record.at("peer")] = record.at("round");
      });
  return read.ok() && std::ranges::all_of(log.hosted, [&](int node) {
           const auto found = newest.find(node);
           return found != newest.end() && found->second == rounds;
         });
}

/// The log's end record; null: it has none.
Json end_of(const ProcessLog& log) {
  const auto file = InputFile::open(log.path);
  if (!file.ok()) return {};
  auto last = parse_json(last_line(*file));
  if (!last.ok() || check_record(*last, log.hosted, log.models.size()) ||
      last->at("record") != "end")
    return {};
  return std::move(*last);
}

/// The nodes of the logs of the run in `folder` for which `holds` returns true.
template <class Predicate>
std::vector<int> nodes_of_logs(const fs::path& folder, const std::string& run_id, Predicate holds) {
  std::vector<int> nodes;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (const auto number = log_number(entry.path()))
      if (const auto log = header_of(entry.path(), *number, run_id); log && holds(*log))
        nodes.insert(nodes.end(), log->hosted.begin(), log->hosted.end());
  std::ranges::sort(nodes);
  return nodes;
}

}  // namespace

fs::path final_path(const ProcessLog& log) {
  return log.path.parent_path() / fmt::format("final-{}.safetensors", log.lowest_peer);
}

LogReader::LogReader(fs::path path, int lowest) {
  log_.path = std::move(path);
  log_.lowest_peer = lowest;
}

Problem LogReader::add(std::string_view line, const OnRecord& on_record) {
  auto parsed = parse_json(line);
  if (!parsed.ok()) return parsed.error().message;
  Json record = std::move(*parsed);
  if (log_.header.is_null()) return read_header(log_, std::move(record));
  if (ended_) return "record: there is a record after the end of the log";
  if (Problem problem = check_record(record, log_.hosted, log_.models.size())) return problem;
  ended_ = record_type(record) == "end";
  on_record(log_, std::move(record));
  return {};
}

Result<bool> LogReader::read(const OnRecord& on_record, std::size_t most) {
  constexpr std::size_t kTail = 256;
  if (!failed_.ok()) return failed_.error();
  const auto read_some = [&]() -> Result<bool> {
    GOSSAMER_TRY(InputFile file, InputFile::open(log_.path));
    LineReader lines(std::move(file), log_.bytes);
    for (std::size_t count = 0; count < most; ++count) {
      GOSSAMER_TRY(const std::optional<std::string_view> line, lines.next());
      if (!line || !lines.complete()) return false;
      ++lines_;
      if (const Problem problem = add(*line, on_record))
        return data_error(fmt::format("{}:{}: {}", log_.path.string(), lines_, *problem));
      log_.bytes += line->size() + 1;
      tail_.append(*line).append("\n");
      tail_.erase(0, tail_.size() - std::min(tail_.size(), kTail));
    }
    return true;
  };
  Result<bool> more = read_some();
  if (!more.ok()) failed_ = more.error();
  return more;
}

bool LogReader::is_unchanged() const {
  const auto file = InputFile::open(log_.path);
  std::string there(tail_.size(), '\0');
  return file.ok() && file->bytes() >= log_.bytes &&
         file->read_exactly(log_.bytes - tail_.size(), there).ok() && there == tail_;
}

Result<std::optional<ProcessLog>> read_log(const fs::path& path, int lowest,
                                           const LogReader::OnRecord& on_record) {
  LogReader reader(path, lowest);
  if (const auto read = reader.read(on_record); !read.ok()) return read.error();
  if (reader.log().header.is_null()) return std::optional<ProcessLog>();
  return std::optional(std::move(reader).log());
}

const Json* ProcessLog::end() const {
  return records.empty() || record_type(records.back()) != "end" ? nullptr : &records.back();
}

Result<std::vector<std::pair<int, fs::path>>> log_files(const fs::path& folder) {
  std::vector<fs::path> folders{folder};
  std::error_code error, ignored;  // ignored: what cannot be inspected is not a process's folder
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.is_directory(ignored)) folders.push_back(entry.path());
  std::vector<std::pair<int, fs::path>> files;
  for (const fs::path& each : folders) {
    for (const auto& entry : fs::directory_iterator(each, error))
      if (const auto number = log_number(entry.path())) files.emplace_back(*number, entry.path());
    if (error)
      return data_error(
          fmt::format("cannot read the folder {}: {}", each.string(), error.message()));
  }
  std::ranges::sort(files);
  return files;
}

Error no_run_in(const fs::path& folder) {
  return data_error(fmt::format("{} contains no run: there is no log-*.jsonl with a header in it",
                                folder.string()));
}

Result<std::vector<ProcessLog>> read_logs(
    const fs::path& folder, const std::function<void(const std::string& message)>& on_skipped) {
  GOSSAMER_TRY(const auto files, log_files(folder));
  std::vector<ProcessLog> logs;
  for (const auto& [lowest, path] : files) {
    std::vector<Json> records;
    GOSSAMER_TRY(std::optional<ProcessLog> log, read_log(
                                                    path, lowest,
                                                    [&records](const ProcessLog&, Json&& record) {
                                                      records.push_back(std::move(record));
                                                    }));
    if (log) {
      log->records = std::move(records);
      logs.push_back(std::move(*log));
      continue;
    }
    const std::string message =
        fmt::format("{} ends within its header: its process was killed before it wrote a record",
                    path.string());
    if (!on_skipped) return data_error(message);
    on_skipped(message);
  }
  if (logs.empty()) return no_run_in(folder);
  return logs;
}

DoneNodes done_nodes(const fs::path& folder, const std::string& run_id, std::uint64_t rounds) {
  DoneNodes done;
  done.all = nodes_of_logs(folder, run_id, [&](const ProcessLog& log) {
    const Json end = end_of(log);
    if (end.is_null()) return false;
    // One that did all rounds and then lost a partner may be resumed, to give it what it misses.
    const bool in_part = end.at("reason") == "lost_peer" && end.at("rounds") < rounds &&
                         has_round_of_each(log, rounds);
    if (in_part) done.in_part.insert(done.in_part.end(), log.hosted.begin(), log.hosted.end());
    return in_part || end.at("reason") == "finished";
  });
  std::ranges::sort(done.in_part);
  return done;
}

std::vector<int> logged_nodes(const fs::path& folder, const std::string& run_id) {
  return nodes_of_logs(folder, run_id, [](const ProcessLog&) { return true; });
}

}  // namespace gossamer::peer
