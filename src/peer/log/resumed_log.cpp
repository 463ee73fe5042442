#include "peer/log/resumed_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>

#include "peer/log/log_records.hpp"

namespace gossamer::peer {
namespace {

namespace fs = std::filesystem;

constexpr gossip::Round kNever = std::numeric_limits<gossip::Round>::max();
constexpr std::size_t kBlockBytes = 1 << 20;  // written at a time

}  // namespace

ResumedLog::Line ResumedLog::line_of(const ProcessLog& log, const Json& record) {
  const std::string type = record_type(record);
  Line line;
  line.begin = log.bytes;
  line.round = type == "end" ? kNever : record.at("round").get<gossip::Round>();
  if (type != "round" || record.at("train_loss").is_null()) return line;
  const auto node = std::ranges::lower_bound(log.hosted, record.at("peer").get<int>());
  line.node_index = static_cast<int>(node - log.hosted.begin());
  line.train_loss = record.at("train_loss").get<double>();
  return line;
}

Result<std::optional<ResumedLog>> ResumedLog::read(const fs::path& path, int lowest) {
  ResumedLog result;
  GOSSAMER_TRY(const InputFile file, InputFile::open(path));
  result.size_ = file.bytes();
  GOSSAMER_TRY(std::optional<ProcessLog> log,
               read_log(
                   path, lowest,
                   [&](const ProcessLog& so_far, Json&& record) {
                     result.lines_.push_back(line_of(so_far, record));
                     result.finished_ =
                         record_type(record) == "end" && record.at("reason") == "finished";
                   }));
  if (!log) return std::optional<ResumedLog>();
  result.log_ = std::move(*log);
  return std::optional(std::move(result));
}

Result<std::vector<double>> ResumedLog::truncate(gossip::Round round) const {
  std::vector<double> losses(log_.hosted.size(), std::numeric_limits<double>::quiet_NaN());
  const auto dropped = [round](const Line& line) { return line.round >= round; };
  for (const Line& line : lines_)
    if (!dropped(line) && line.node_index >= 0)
      losses[static_cast<std::size_t>(line.node_index)] = line.train_loss;
  const auto first = std::ranges::find_if(lines_, dropped);
  bool truncated = false;
  if (std::all_of(first, lines_.end(), dropped)) {
    const std::uint64_t end = first == lines_.end() ? log_.bytes : first->begin;
    GOSSAMER_TRY(truncated, truncate_file(log_.path, size_, end));
  }
  if (!truncated) GOSSAMER_TRY_STATUS(rewrite(round));
  return losses;
}

/// Calls `visit` for each line of the file that was read, in order, and says whether
/// truncate(round) drops it. Lines that were appended since, by another process, are left out.
Status ResumedLog::each_line(
    gossip::Round round,
    const std::function<Status(std::string_view text, bool dropped)>& visit) const {
  std::size_t number = 0;  // of the lines so far; the first is the header
  return read_lines(log_.path, [&](std::string_view text) -> Status {
    if (number > lines_.size()) return {};
    const bool dropped = number > 0 && lines_[number - 1].round >= round;
    ++number;
    return visit(text, dropped);
  });
}

Result<std::size_t> ResumedLog::copy_dropped(gossip::Round round, const fs::path& path) const {
  const auto is_lost = [&](const Line& line) {
    return line.round >= round && line.round != kNever;
  };
  if (std::ranges::none_of(lines_, is_lost)) return std::size_t{0};
  std::ofstream out(path, std::ios::binary | std::ios::app);
  std::size_t count = 0;
  GOSSAMER_TRY_STATUS(each_line(round, [&](std::string_view text, bool dropped) -> Status {
    if (!dropped) return {};
    out << text << '\n';
    ++count;
    return {};
  }));
  out.close();
  if (!out) return data_error(fmt::format("cannot write {}", path.string()));
  return count;
}

/// Copies the remaining lines to a new file. This handles logs in which dropped and remaining lines
/// alternate, because nodes of the process were in different rounds, and logs to which another
/// process is writing.
Status ResumedLog::rewrite(gossip::Round round) const {
  GOSSAMER_TRY(AtomicFile file, AtomicFile::create(log_.path));
  std::string block;
  std::uint64_t written = 0;
  const auto write_block = [&]() -> Status {
    GOSSAMER_TRY_STATUS(file.write(written, block));
    written += block.size();
    block.clear();
    return {};
  };
  GOSSAMER_TRY_STATUS(each_line(round, [&](std::string_view text, bool dropped) -> Status {
    if (dropped) return {};
    block.append(text).push_back('\n');
    return block.size() < kBlockBytes ? Status() : write_block();
  }));
  GOSSAMER_TRY_STATUS(write_block());
  return file.commit();
}

}  // namespace gossamer::peer
