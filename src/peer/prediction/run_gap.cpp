#include "peer/prediction/run_gap.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "gossip/algorithm.hpp"
#include "peer/log/log_records.hpp"
#include "peer/log/resolved_config.hpp"
#include "peer/log/run_files.hpp"
#include "peer/prediction/prediction.hpp"
#include "peer/setup/setup.hpp"
#include "theory/realised.hpp"
#include "topology/convergence.hpp"
#include "topology/spectrum.hpp"

namespace gossamer::peer {
namespace {

namespace fs = std::filesystem;

/// The last logged round of each peer. All logs must belong to one run, and none may be missing.
Result<std::map<int, std::uint64_t>> last_rounds(const fs::path& folder,
                                                 const std::vector<ProcessLog>& logs) {
  std::map<int, std::uint64_t> last;
  for (const ProcessLog& log : logs) {
    if (log.header.at("run_id") != logs.front().header.at("run_id") ||
        log.peers != logs.front().peers)
      return data_error(
          fmt::format("{} is from another run than {}: a folder may contain only one run",
                      log.path.string(), logs.front().path.string()));
    for (const Json& record : log.records)
      if (record_type(record) == "round") {
        std::uint64_t& round = last[record.at("peer").get<int>()];
        round = std::max(round, record.at("round").get<std::uint64_t>());
      }
  }
  std::vector<int> missing;
  for (int peer = 0; peer < logs.front().peers; ++peer)
    if (!last.contains(peer)) missing.push_back(peer);
  if (missing.empty()) return last;
  return data_error(
      fmt::format("in {} the logs of {} of {} peers are missing: {}; copy their run folders here",
                  folder.string(), missing.size(), logs.front().peers, fmt::join(missing, ", ")));
}

/// The rounds that a peer missed because its process was not running, until it joined the network
/// again. It has no records of them.
struct Absence {
  int peer = 0;
  std::uint64_t after = 0, before = 0;
};

std::vector<Absence> absences_in(const std::vector<ProcessLog>& logs) {
  std::vector<Absence> absences;
  for (const ProcessLog& log : logs) {
    std::map<int, std::uint64_t> last;
    for (const Json& record : log.records) {
      if (record_type(record) != "round" && record_type(record) != "membership") continue;
      const int peer = record.at("peer").get<int>();
      const auto round = record.at("round").get<std::uint64_t>();
      if (record_type(record) == "round") last[peer] = round;
      else if (record.at("event") == "joined") absences.push_back({peer, last[peer], round});
    }
  }
  return absences;
}

/// If a neighbour mixed without an absent peer, the peer also mixed without that neighbour.
void add_absences(std::vector<theory::Departure>& departures,
                  const std::vector<Absence>& absences) {
  for (const Absence& absence : absences)
    for (std::size_t k = departures.size(); k-- > 0;) {
      const theory::Departure other = departures[k];
      if (other.from == absence.peer && !other.used && other.round >= absence.after &&
          other.round < absence.before)
        departures.push_back({absence.peer, other.round, other.peer, std::nullopt});
    }
}

/// The deviations from W in the mixes of one row of the algorithm.
Result<std::vector<theory::Departure>> departures_in(const std::vector<ProcessLog>& logs,
                                                     std::size_t row,
                                                     const std::map<int, std::uint64_t>& last) {
  std::vector<theory::Departure> departures;
  for (const ProcessLog& log : logs)
    for (const Json& record : log.records) {
      if (record_type(record) != "deviations") continue;
      for (const Json& deviation : record.at("deviations")) {
        if (deviation.value("row", std::size_t{0}) != row) continue;
        theory::Departure departure{record.at("peer").get<int>(),
                                    deviation.at("round").get<std::uint64_t>(),
                                    deviation.at("from").get<int>(), std::nullopt};
        if (!deviation.at("used_round").is_null())
          departure.used = deviation.at("used_round").get<std::uint64_t>();
        const auto from = last.find(departure.from);
        if (from == last.end() || (departure.used && *departure.used > from->second))
          return data_error(fmt::format(
              "{}: the deviations of peer {} name a row of peer {} that is in no log (round {})",
              log.path.string(), departure.peer, departure.from,
              text_of(deviation.at("used_round"))));
        departures.push_back(departure);
      }
    }
  add_absences(departures, absences_in(logs));
  return departures;
}

}  // namespace

Result<RunGap> gap_of_run(const fs::path& folder, const std::vector<Override>& overrides) {
  GOSSAMER_TRY(const std::vector<ProcessLog> logs, read_logs(folder));
  const ProcessLog& first = logs.front();
  const fs::path resolved = resolved_path(first.path.parent_path(), first.lowest_peer);
  GOSSAMER_TRY(const Config config, load_config(resolved.string(), overrides));
  GOSSAMER_TRY(const auto algorithm,
               gossip::make_algorithm(config.algorithm.kind, config.algorithm.values));
  GOSSAMER_TRY(const auto schedule, topology::make_schedule(schedule_request(config, *algorithm)));
  const auto rows = algorithm->rows(*schedule);
  const auto mixed = std::ranges::find(rows, true, &gossip::RowSpec::mixed);
  if (!algorithm->requirements().mixing_matrix || mixed == rows.end())
    return invalid_error(fmt::format("{}: '{}' does not mix, so it has no spectral gap",
                                     folder.string(), config.algorithm.kind));
  if (const std::string& rule = config.mixing.kind; rule != "mean")
    return invalid_error(
        fmt::format("{}: the mixing rule '{}' weighs rows by their values and not "
                    "by W, so there is no spectral gap",
                    folder.string(), rule));
  if (const Status known = check_predictable(config); !known.ok())
    return invalid_error(fmt::format("{}: {}", folder.string(), known.error().message));
  GOSSAMER_TRY(const auto last, last_rounds(folder, logs));
  GOSSAMER_TRY(const auto departures,
               departures_in(logs, static_cast<std::size_t>(mixed - rows.begin()), last));
  if (schedule->weighing().only_columns())
    return invalid_error(fmt::format(
        "{}: only the columns of W sum to 1, so the ratios of push-sum converge and not the "
        "rows, and there is no spectral gap",
        folder.string()));
  if (schedule->weighing().only_rows())
    return invalid_error(fmt::format(
        "{}: only the rows of W sum to 1, so mixing moves the mean that the spectral gap is about",
        folder.string()));
  if (schedule->peers() != first.peers)
    return data_error(fmt::format("{} has {} peers, but {} has {}", first.path.string(),
                                  first.peers, resolved.string(), schedule->peers()));
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
    else
      ++gap.stale,
          gap.max_staleness = std::max(gap.max_staleness, departure.round - *departure.used);
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
          {"gap_planned", finite_or_null(gap.planned)},
          {"gap_realised", finite_or_null(gap.realised)},
          {"rows", gap.rows},
          {"deviations", gap.missing + gap.stale + gap.early},
          {"missing", gap.missing},
          {"stale", gap.stale},
          {"early", gap.early},
          {"max_staleness", gap.max_staleness}};
}

std::string gap_text(const RunGap& gap) {
  std::string text =
      fmt::format("{}: {} peers, {}, {} rounds\n", gap.run_id, gap.peers, gap.topology, gap.rounds);
  const auto line = [&text](std::string_view name, const std::string& value) {
    text += fmt::format("  {:<16}{}\n", name, value);
  };
  line("gap planned", std::isnan(gap.planned) ? "not known" : fmt::format("{:.6g}", gap.planned));
  line("gap realised", fmt::format("{:.6g}", gap.realised));
  const std::uint64_t total = gap.missing + gap.stale + gap.early;
  line("deviations",
       total == 0
           ? "none: every row was mixed as planned"
           : fmt::format("{} of {} rows: {} missing, {} stale (by up to {} round{}), {} early",
                         total, gap.rows, gap.missing, gap.stale, gap.max_staleness,
                         gap.max_staleness == 1 ? "" : "s", gap.early));
  return text;
}

}  // namespace gossamer::peer
