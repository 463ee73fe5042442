#include "peer/log/open_participants.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <string>

#include "base/id_list.hpp"
#include "peer/log/log_records.hpp"

namespace gossamer::peer {

Result<topology::Participants> open_participants(const RunOptions& run,
                                                 const std::vector<ProcessLog>& logs) {
  std::map<std::uint64_t, std::string> by_round;
  for (const ProcessLog& log : logs)
    for (const Json& record : log.records)
      if (record_type(record) == "membership" && record.at("event") == "participants")
        by_round.try_emplace(record.at("round").get<std::uint64_t>(),
                             record.at("participants").get<std::string>());
  GOSSAMER_TRY(const auto begin,
               topology::Participants::parse_open(run.participants, run.peers, "run.participants"));
  std::string last = ids_text(begin.at(0).peers);
  std::vector<std::string> texts{last};
  for (const auto& [round, ids] : by_round) {
    if (round == 0 || round >= run.rounds || ids == last) continue;
    texts.push_back(fmt::format("{}: {}", round, ids));
    last = ids;
  }
  auto read = topology::Participants::parse(texts, run.peers, "the participants of the logs");
  if (!read.ok()) return data_error(read.error().message);
  return read;
}

}  // namespace gossamer::peer
