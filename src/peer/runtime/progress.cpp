#include "peer/runtime/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

namespace gossamer::peer {
namespace {

std::string metric(const Json& record, const char* name, const std::string& label, double factor,
                   const char* unit) {
  const auto found = record.find(name);
  if (found == record.end() || found->is_null()) return {};
  return fmt::format(", {} {:.4g}{}", label, found->get<double>() * factor, unit);
}

}  // namespace

Progress::Progress(std::uint64_t rounds, bool quiet)
    : rounds_(rounds),
      quiet_(quiet),
      terminal_(::isatty(STDERR_FILENO) != 0),
      begin_(std::chrono::steady_clock::now()) {}

void Progress::show(const Json& record) {
  if (quiet_) return;
  const auto round = record["round"].get<std::uint64_t>();
  const auto now = std::chrono::steady_clock::now();
  if (terminal_ ? now - last_shown_ < std::chrono::milliseconds(100) && round < rounds_
                : rounds_ == 0 || round * 10 / rounds_ <= tenth_)
    return;
  tenth_ = rounds_ == 0 ? 0 : round * 10 / rounds_;
  last_shown_ = now;
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  std::string text = fmt::format("round {}/{}", round, rounds_);
  text += metric(record, "averaged_accuracy", "accuracy of the average", 100, " %");
  // Of the peers of a process, the one that comes to a tenth of the rounds first has the line.
  const auto peer = record.find("peer");
  text += metric(
      record, "test_accuracy",
      peer == record.end() ? "accuracy" : fmt::format("accuracy of peer {}", peer->get<int>()), 100,
      " %");
  text += metric(record, "consensus_distance", "consensus distance", 1, "");
  if (round > 0 && round < rounds_)
    text += fmt::format(", {:.0f} s left", seconds / static_cast<double>(round) *
                                               static_cast<double>(rounds_ - round));
  // Errors of stderr, for example a full disk, are ignored: they do not end the run.
  std::fputs((terminal_ ? "\r\033[K" + text : text + "\n").c_str(), stderr);
  std::fflush(stderr);
  line_shown_ = terminal_;
}

void Progress::end() {
  if (line_shown_) std::fputs("\r\033[K", stderr);
  line_shown_ = false;
}

}  // namespace gossamer::peer
