#include "peer/log/open_participants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/id_list.hpp"
#include "peer/log/log_records.hpp"

namespace gossamer::peer {

namespace {

using Rounds = std::map<std::uint64_t, std::string>;

/// What a log has without a break: a process that joins may come from rounds that the others have
/// dropped, because they resumed from an earlier one.
struct Segment {
  std::uint64_t first = 0, last = 0;  ///< rounds in which the process knew the participants
  Rounds participants;  ///< from a round on; from the first one those that the run begins with
};

std::vector<Segment> segments_of(const ProcessLog& log) {
  std::vector<Segment> segments(1);
  for (const Json& record : log.records) {
    const std::string type = record_type(record);
    if (type != "round" && type != "membership") continue;
    const auto at = record.at("round").get<std::uint64_t>();
    std::uint64_t& last = segments.back().last;
    // A record of t rounds is one of round t - 1: a peer that leaves has none of the next.
    if (type == "round") last = std::max(last, at - std::min<std::uint64_t>(at, 1));
    else if (record.at("event") == "joined") segments.push_back({at, at, {}});
    else if (record.at("event") == "participants") {
      last = std::max(last, at);
      segments.back().participants[at] = record.at("participants").get<std::string>();
    }
  }
  return segments;
}

}  // namespace

Result<topology::Participants> open_participants(const RunOptions& run,
                                                 const std::vector<ProcessLog>& logs) {
  std::vector<Segment> segments;  // by log, the lowest peer's first
  for (const ProcessLog& log : logs)
    for (Segment& segment : segments_of(log)) segments.push_back(std::move(segment));
  GOSSAMER_TRY(const auto begin,
               topology::Participants::parse_open(run.participants, run.peers, "run.participants"));
  std::string last = ids_text(begin.at(0).peers);
  std::vector<std::string> texts{last};
  std::set<std::uint64_t> rounds;
  for (const Segment& segment : segments)
    for (const auto& [round, ids] : segment.participants) rounds.insert(round);
  for (const std::uint64_t round : rounds) {
    const auto covers = [round](const Segment& segment) {
      return segment.first <= round && round <= segment.last;
    };
    const auto segment = std::ranges::find_if(segments, covers);
    if (segment == segments.end())
      return data_error(
          fmt::format("a log has participants of round {} behind those of a later round", round));
    const Rounds& known = segment->participants;
    const auto next = known.upper_bound(round);
    const std::string& ids = next == known.begin() ? texts.front() : std::prev(next)->second;
    if (round == 0 || round >= run.rounds || ids == last) continue;
    texts.push_back(fmt::format("{}: {}", round, ids));
    last = ids;
  }
  auto read = topology::Participants::parse(texts, run.peers, "the participants of the logs");
  if (!read.ok()) return data_error(read.error().message);
  return read;
}

}  // namespace gossamer::peer
