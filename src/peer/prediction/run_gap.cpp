#include "peer/prediction/run_gap.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "gossip/algorithm.hpp"
#include "peer/log/log_records.hpp"
#include "peer/log/recorder.hpp"
#include "peer/log/run_files.hpp"
#include "peer/runtime/setup.hpp"
#include "theory/realised.hpp"
#include "topology/outlook.hpp"
#include "topology/spectrum.hpp"

namespace gossamer::peer {
namespace {

namespace fs = std::filesystem;

Error bad(std::string message) { return {ErrorKind::data, std::move(message)}; }

/// The round that each peer has come to, by what it logged; every peer of one run.
Result<std::map<int, std::uint64_t>> last_rounds(const fs::path& folder,
                                                 const std::vector<ProcessLog>& logs) {
  std::map<int, std::uint64_t> last;
  for (const ProcessLog& log : logs) {
    if (log.header.at("run_id") != logs.front().header.at("run_id") ||
        log.peers != logs.front().peers)
      return bad(fmt::format("{} is of another run than {}: one folder, one run", log.path.string(),
                             logs.front().path.string()));
    for (const Json& record : log.records)
      if (sort_of(record) == "round") {
        std::uint64_t& round = last[record.at("peer").get<int>()];
        round = std::max(round, record.at("round").get<std::uint64_t>());
      }
  }
  std::vector<int> missing;
  for (int peer = 0; peer < logs.front().peers; ++peer)
    if (!last.contains(peer)) missing.push_back(peer);
  if (missing.empty()) return last;
  return bad(fmt::format(
      "below {} the logs of {} of {} peers are missing: {}; copy their run folders here",
      folder.string(), missing.size(), logs.front().peers, fmt::join(missing, ", ")));
}

/// The rounds that a peer missed before its process, started again, joined the network: without a
/// record of its own.
struct Absence {
  int peer = 0;
  std::uint64_t after = 0, before = 0;
};

std::vector<Absence> absences_in(const std::vector<ProcessLog>& logs) {
  std::vector<Absence> absences;
  for (const ProcessLog& log : logs) {
    std::map<int, std::uint64_t> last;
    for (const Json& record : log.records) {
      if (sort_of(record) != "round" && sort_of(record) != "membership") continue;
      const int peer = record.at("peer").get<int>();
      const auto round = record.at("round").get<std::uint64_t>();
      if (sort_of(record) == "round") last[peer] = round;
      else if (record.at("event") == "joined") absences.push_back({peer, last[peer], round});
    }
  }
  return absences;
}

/// Whoever was absent mixed with those no more than they with it.
void mirror(std::vector<theory::Departure>& departures, const std::vector<Absence>& absences) {
  for (const Absence& absence : absences)
    for (std::size_t k = departures.size(); k-- > 0;) {
      const theory::Departure of = departures[k];
      if (of.from == absence.peer && !of.used && of.round >= absence.after &&
          of.round < absence.before)
        departures.push_back({absence.peer, of.round, of.peer, std::nullopt});
    }
}

/// Of the mixes of one row of the algorithm.
Result<std::vector<theory::Departure>> departures_in(const std::vector<ProcessLog>& logs,
                                                     std::size_t row,
                                                     const std::map<int, std::uint64_t>& last) {
  std::vector<theory::Departure> departures;
  for (const ProcessLog& log : logs)
    for (const Json& record : log.records) {
      if (sort_of(record) != "deviations") continue;
      for (const Json& deviation : record.at("deviations")) {
        if (deviation.value("row", std::size_t{0}) != row) continue;
        theory::Departure departure{record.at("peer").get<int>(),
                                    deviation.at("round").get<std::uint64_t>(),
                                    deviation.at("from").get<int>(), std::nullopt};
        if (!deviation.at("used_round").is_null())
          departure.used = deviation.at("used_round").get<std::uint64_t>();
        const auto from = last.find(departure.from);
        if (from == last.end() || (departure.used && *departure.used > from->second))
          return bad(fmt::format(
              "{}: peer {}'s deviations name a row of peer {} that no log knows of (round {})",
              log.path.string(), departure.peer, departure.from,
              text_of(deviation.at("used_round"))));
        departures.push_back(departure);
      }
    }
  mirror(departures, absences_in(logs));
  return departures;
}

}  // namespace

Result<RunGap> gap_of_run(const fs::path& folder, const std::vector<Override>& overrides) {
  GOSSAMER_TRY(const std::vector<ProcessLog> logs, read_logs(folder));
  const ProcessLog& first = logs.front();
  const fs::path resolved =
      first.path.parent_path() / fmt::format("resolved-{}.toml", first.lowest_peer);
  GOSSAMER_TRY(const Config config, load_config(resolved.string(), overrides));
  GOSSAMER_TRY(const auto algorithm,
               gossip::make_algorithm(config.algorithm.kind, config.algorithm.values));
  GOSSAMER_TRY(const auto schedule, topology::make_schedule(schedule_request(config, *algorithm)));
  const auto rows = algorithm->rows(*schedule);
  const auto mixed = std::ranges::find(rows, true, &gossip::RowSpec::mixed);
  if (!algorithm->needs().mixing_matrix || mixed == rows.end())
    return Error{ErrorKind::invalid, fmt::format("{}: '{}' does not mix, so there is no gap to it",
                                                 folder.string(), config.algorithm.kind)};
  GOSSAMER_TRY(const auto last, last_rounds(folder, logs));
  GOSSAMER_TRY(const auto departures,
               departures_in(logs, static_cast<std::size_t>(mixed - rows.begin()), last));
  if (schedule->weighing().only_columns())
    return Error{
        ErrorKind::invalid,
        fmt::format(
            "{}: W keeps only its columns, so rows do not come together but their ratios do "
            "(push-sum), of which there is no gap",
            folder.string())};
  if (schedule->peers() != first.peers)
    return bad(fmt::format("{} is of {} peers, {} of {}", first.path.string(), first.peers,
                           resolved.string(), schedule->peers()));
  RunGap gap;
  gap.run_id = first.header.at("run_id");
  gap.topology = config.topology.kind;
  gap.peers = first.peers;
  gap.rounds = std::numeric_limits<std::uint64_t>::max();
  for (const auto& [peer, round] : last) gap.rounds = std::min(gap.rounds, round);
  gap.planned = topology::spectral_gap(*schedule);
  gap.rows = static_cast<std::uint64_t>(topology::messages_in(*schedule, gap.rounds));
  for (const theory::Departure& departure : departures) {
    if (departure.round >= gap.rounds) continue;
    if (!departure.used) ++gap.missing;
    else if (*departure.used > departure.round) ++gap.early;
    else ++gap.stale, gap.latest = std::max(gap.latest, departure.round - *departure.used);
  }
  auto realised = theory::realised_gap(*schedule, gap.rounds, departures);
  if (!realised.ok())
    return Error{realised.error().kind,
                 fmt::format("{}: {}", folder.string(), realised.error().message)};
  gap.realised = *realised;
  return gap;
}

Json gap_json(const RunGap& gap) {
  return {{"schema", 1},
          {"run_id", gap.run_id},
          {"topology", gap.topology},
          {"peers", gap.peers},
          {"rounds", gap.rounds},
          {"gap_planned", number(gap.planned)},
          {"gap_realised", number(gap.realised)},
          {"rows", gap.rows},
          {"deviations", gap.missing + gap.stale + gap.early},
          {"missing", gap.missing},
          {"stale", gap.stale},
          {"early", gap.early},
          {"latest", gap.latest}};
}

std::string gap_text(const RunGap& gap) {
  std::string text =
      fmt::format("{}: {} peers, {}, {} rounds\n", gap.run_id, gap.peers, gap.topology, gap.rounds);
  const auto line = [&text](std::string_view name, const std::string& value) {
    text += fmt::format("  {:<16}{}\n", name, value);
  };
  line("gap planned", std::isnan(gap.planned) ? "not known" : fmt::format("{:.6g}", gap.planned));
  line("gap realised", fmt::format("{:.6g}", gap.realised));
  const std::uint64_t all = gap.missing + gap.stale + gap.early;
  line("deviations",
       all == 0 ? "none: every row was mixed as planned"
                : fmt::format("{} of {} rows: {} missing, {} late (by up to {} round{}), {} early",
                              all, gap.rows, gap.missing, gap.stale, gap.latest,
                              gap.latest == 1 ? "" : "s", gap.early));
  return text;
}

}  // namespace gossamer::peer
