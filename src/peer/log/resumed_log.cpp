#include "peer/log/resumed_log.hpp"

#include <algorithm>
#include <limits>

#include "peer/log/log_records.hpp"

namespace gossamer::peer {
namespace {

namespace fs = std::filesystem;

constexpr gossip::Round kNever = std::numeric_limits<gossip::Round>::max();
constexpr std::size_t kBlock = 1 << 20;  // bytes written at a time

}  // namespace

ResumedLog::Line ResumedLog::line_of(const ProcessLog& log, const Json& record) {
  const std::string sort = sort_of(record);
  Line line;
  line.begin = log.bytes;
  line.round = sort == "end" ? kNever : record.at("round").get<gossip::Round>();
  if (sort != "round" || record.at("train_loss").is_null()) return line;
  const auto node = std::ranges::lower_bound(log.hosted, record.at("peer").get<int>());
  line.trained = static_cast<int>(node - log.hosted.begin());
  line.train_loss = record.at("train_loss").get<double>();
  return line;
}

Result<std::optional<ResumedLog>> ResumedLog::read(const fs::path& path, int lowest) {
  ResumedLog earlier;
  GOSSAMER_TRY(earlier.size_, size_of_file(path));
  GOSSAMER_TRY(std::optional<ProcessLog> log,
               read_log(
                   path, lowest,
                   [&](const ProcessLog& so_far, Json&& record) {
                     earlier.lines_.push_back(line_of(so_far, record));
                     earlier.finished_ =
                         sort_of(record) == "end" && record.at("reason") == "finished";
                   }));
  if (!log) return std::optional<ResumedLog>();
  earlier.log_ = std::move(*log);
  return std::optional(std::move(earlier));
}

Result<std::vector<double>> ResumedLog::cut(gossip::Round round) const {
  std::vector<double> losses(log_.hosted.size(), std::numeric_limits<double>::quiet_NaN());
  const auto goes = [round](const Line& line) { return line.round >= round; };
  for (const Line& line : lines_)
    if (!goes(line) && line.trained >= 0)
      losses[static_cast<std::size_t>(line.trained)] = line.train_loss;
  const auto first = std::ranges::find_if(lines_, goes);
  bool shortened = false;
  if (std::all_of(first, lines_.end(), goes)) {
    GOSSAMER_TRY(shortened, shorten_file(log_.path, size_, first == lines_.end() ? log_.bytes : first->begin));
  }
  if (!shortened) GOSSAMER_TRY_STATUS(rewrite(round));
  return losses;
}

/// Where nodes of the process were rounds apart, what goes stands between what stays. Another
/// process may write meanwhile.
Status ResumedLog::rewrite(gossip::Round round) const {
  GOSSAMER_TRY(WholeFile file, WholeFile::create(log_.path));
  std::string block;
  std::uint64_t written = 0;
  const auto write_block = [&]() -> Status {
    GOSSAMER_TRY_STATUS(file.write(written, block));
    written += block.size();
    block.clear();
    return {};
  };
  std::size_t number = 0;
  GOSSAMER_TRY_STATUS(read_lines(log_.path, [&](std::string_view text) -> Status {
    if (number > lines_.size()) return {};  // was not there when it was read
    if (number++ > 0 && lines_[number - 2].round >= round) return {};
    block.append(text).push_back('\n');
    return block.size() < kBlock ? Status() : write_block();
  }));
  GOSSAMER_TRY_STATUS(write_block());
  return file.commit();
}

}  // namespace gossamer::peer
