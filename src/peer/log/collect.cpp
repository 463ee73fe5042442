#include "peer/log/collect.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "base/hash.hpp"
#include "peer/log/log_records.hpp"
#include "peer/log/open_participants.hpp"
#include "peer/log/part_logs.hpp"
#include "peer/log/recorder.hpp"
#include "peer/log/run_files.hpp"
#include "peer/log/run_setup.hpp"
#include "peer/log/summary.hpp"
#include "peer/setup/node_tensors.hpp"
#include "peer/setup/setup.hpp"
#include "peer/storage/safetensors.hpp"

namespace gossamer::peer {
namespace {

namespace fs = std::filesystem;

/// Checks that the logs belong to the run of the first log and contain each node at most once.
/// Returns the peers without a log.
Result<std::vector<int>> peers_without_log(const fs::path& folder, const ProcessLog& first,
                                           const std::vector<ProcessLog>& logs) {
  const bool one_node = first.header.at("config").at("algorithm").at("kind") == "centralized";
  std::vector<int> seen(static_cast<std::size_t>(first.peers + first.servers));
  for (const ProcessLog& log : logs) {
    GOSSAMER_TRY_STATUS(check_same_run(first, log));
    for (int peer : log.hosted)
      if (++seen[static_cast<std::size_t>(peer)] > 1)
        return data_error(fmt::format("{}: {} {} has two logs in {}", log.path.string(),
                                      peer < log.peers ? "peer" : "server", peer, folder.string()));
    if (log.end() == nullptr)
      return data_error(
          fmt::format("{} has no end record: its process is still running or was killed "
                      "(--survivors leaves it out)",
                      log.path.string()));
  }
  std::vector<int> missing;
  for (int peer = 0; peer < (one_node ? 1 : first.peers); ++peer)
    if (seen[static_cast<std::size_t>(peer)] == 0) missing.push_back(peer);
  for (int server = first.peers; server < first.peers + first.servers; ++server)
    if (seen[static_cast<std::size_t>(server)] == 0)
      return data_error(
          fmt::format("in {} the files of server {} are missing; copy its run folder here",
                      folder.string(), server));
  return missing;
}

/// The rounds of the processes that have finished the run; nothing if none has.
std::optional<std::uint64_t> finished_rounds(const std::vector<ProcessLog>& logs) {
  for (const ProcessLog& log : logs)
    if (log.end() != nullptr && log.end()->at("reason") == "finished")
      return log.end()->at("rounds").get<std::uint64_t>();
  return std::nullopt;
}

/// Whether the process ended before a run that others have finished, and for a reason of its own.
bool ended_early(const ProcessLog& log, std::optional<std::uint64_t> finished) {
  if (log.end() == nullptr || !finished) return false;
  const auto reason = log.end()->at("reason").get<std::string>();
  return (reason == "interrupted" || reason == "diverged" || reason == "failed") &&
         log.end()->at("rounds").get<std::uint64_t>() < *finished;
}

/// No process that is not left out has ended early.
Status check_all_finished(const std::vector<ProcessLog>& logs) {
  const auto finished = finished_rounds(logs);
  for (const ProcessLog& log : logs)
    if (ended_early(log, finished))
      return data_error(
          fmt::format("{}: its process ended in round {} ({}), while others have finished the run "
                      "(--survivors leaves it out)",
                      log.path.string(), text_of(log.end()->at("rounds")),
                      log.end()->at("reason").get<std::string>()));
  return {};
}

/// `open`: the participants of an open run. Else every peer takes part, sooner or later.
bool took_part(int peer, const std::optional<topology::Participants>& open) {
  return !open || std::ranges::any_of(open->changes(), [peer](const auto& change) {
    return std::ranges::binary_search(change.peers, peer);
  });
}

Error files_missing(const fs::path& folder, const std::vector<int>& of, int peers) {
  return data_error(
      fmt::format("in {} the files of {} of {} peers are missing: {}; copy their run folders here, "
                  "or leave them out (--survivors)",
                  folder.string(), of.size(), peers, fmt::join(of, ", ")));
}

/// What the processes have of the final rows of all peers, and of a server that holds the whole
/// model, by node.
Result<std::map<int, std::vector<float>>> read_rows(const Setup& setup,
                                                    const std::vector<ProcessLog>& logs) {
  std::map<int, std::vector<float>> rows;
  for (const ProcessLog& log : logs) {
    const fs::path path = final_path(log);
    GOSSAMER_TRY(const TensorFile file, read_safetensors(path));
    const Json& row_hashes = log.end()->at("row_hashes");
    if (const auto id = file.metadata.find("run_id");
        id == file.metadata.end() || id->second != setup.config.run_id())
      return data_error(
          fmt::format("{} is from another run than {}", path.string(), log.path.string()));
    for (std::size_t i = 0; i < log.models.size(); ++i) {
      const int peer = log.models[i];
      const std::string prefix = tensor_prefix(setup, peer) + ".";
      std::vector<float> row;
      for (const Tensor& tensor : file.tensors)  // the order of the file is that of the row
        if (tensor.name.starts_with(prefix))
          row.insert(row.end(), tensor.values.begin(), tensor.values.end());
      if (const Json& length = log.header.at("parameters"); row.size() != length)
        return data_error(fmt::format("{} contains {} values of {} {}, not {}", path.string(),
                                      row.size(), setup.is_server(peer) ? "server" : "peer", peer,
                                      text_of(length)));
      if (row_hashes.at(i) != hash_hex(row))
        return data_error(fmt::format(
            "{} is damaged: the hash of the parameters of {} {} differs from the one in {}",
            path.string(), setup.is_server(peer) ? "server" : "peer", peer, log.path.string()));
      rows[peer] = std::move(row);
    }
  }
  return rows;
}

/// The final rows, put together from those of the parts.
Result<std::map<int, std::vector<float>>> read_rows(
    const Setup& setup, const std::vector<std::vector<ProcessLog>>& parts) {
  if (parts.size() == 1) return read_rows(setup, parts.front());
  const auto& split = setup.workload->spec().split;
  std::map<int, std::vector<float>> rows;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    GOSSAMER_TRY(const auto some, read_rows(setup, parts[p]));
    for (const auto& [peer, row] : some) {
      std::vector<float>& whole = rows[peer];
      if (!split) {  // recorded: stages in their order
        whole.insert(whole.end(), row.begin(), row.end());
        continue;
      }
      if (split->parts().size() != parts.size() || split->parts()[p].parameters != row.size())
        return data_error(fmt::format(
            "{}: part {} of peer {} has {} parameters, and the model is cut in another way",
            parts[p].front().path.string(), p, peer, row.size()));
      whole.resize(setup.parameters);
      put_part<float>(split->parts()[p], row.data(), whole);
    }
  }
  return rows;
}

RunTotals totals_of(const std::vector<ProcessLog>& logs) {
  const bool is_virtual = logs.front().header.at("time") == "virtual";
  RunTotals totals;
  constexpr auto kNone = std::numeric_limits<std::uint64_t>::max();
  totals.rounds = kNone;
  std::uint64_t last_left = 0;
  totals.deviations.emplace();
  totals.virtual_seconds = is_virtual ? 0 : std::numeric_limits<double>::quiet_NaN();
  constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();
  std::map<int, double> losses, epsilons;
  std::map<int, train::Evaluation> evaluations;
  for (const ProcessLog& log : logs) {
    const Json& end = *log.end();
    const bool left = end.at("reason") == kLeft;
    if (end.at("reason") != "finished" && !left && totals.reason == "finished")
      totals.reason = end.at("reason");
    const auto rounds = end.at("rounds").get<std::uint64_t>();
    if (left) last_left = std::max(last_left, rounds);
    else totals.rounds = std::min(totals.rounds, rounds);
    totals.wall_seconds = std::max(totals.wall_seconds, end.at("wall_seconds").get<double>());
    if (is_virtual)
      totals.virtual_seconds = std::max(totals.virtual_seconds, end.at("seconds").get<double>());
    totals.node_steps += end.at("node_steps").get<std::uint64_t>();
    totals.bytes_sent += end.at("bytes_sent").get<std::uint64_t>();
    for (int peer : log.hosted) {
      if (peer >= log.peers) continue;
      losses[peer] = kNotMeasured;
      evaluations[peer] = {kNotMeasured, kNotMeasured};
    }
    if (end.contains("epsilons"))
      for (std::size_t i = 0; i < end.at("epsilons").size(); ++i)
        epsilons[log.hosted.at(i)] = end.at("epsilons").at(i);
    const auto number = [](const Json& value) {
      return value.is_null() ? kNotMeasured : value.get<double>();
    };
    for (const Json& record : log.records) {
      if (record_type(record) == "deviations")
        for (const Json& deviation : record.at("deviations"))
          ++(*totals.deviations)[deviation.at("from").get<int>()];
      if (record_type(record) != "round") continue;
      const int peer = record.at("peer");
      if (peer >= log.peers) continue;
      if (!record.at("train_loss").is_null()) losses[peer] = record.at("train_loss");
      evaluations[peer] = {number(record.at("test_loss")), number(record.at("test_accuracy"))};
    }
  }
  if (totals.rounds == kNone) totals.rounds = last_left;
  for (const auto& [peer, loss] : losses) totals.train_losses.push_back(loss);
  if (epsilons.size() == losses.size())
    for (const auto& [peer, epsilon] : epsilons) totals.epsilons.push_back(epsilon);
  for (const auto& [peer, evaluation] : evaluations) totals.evaluations.push_back(evaluation);
  return totals;
}

/// Each worker of a replica sends bytes of its own, and all of them take the same steps.
RunTotals totals_of(const std::vector<std::vector<ProcessLog>>& parts) {
  RunTotals totals = totals_of(parts.front());
  for (std::size_t p = 1; p < parts.size(); ++p) {
    const RunTotals of_part = totals_of(parts[p]);
    totals.bytes_sent += of_part.bytes_sent;
    totals.wall_seconds = std::max(totals.wall_seconds, of_part.wall_seconds);
    totals.rounds = std::min(totals.rounds, of_part.rounds);
    if (totals.reason == "finished") totals.reason = of_part.reason;
  }
  return totals;
}

}  // namespace

Result<Json> collect(const fs::path& folder, const std::vector<Override>& overrides,
                     bool survivors) {
  GOSSAMER_TRY(std::vector<ProcessLog> logs, read_logs(folder));
  const fs::path example = logs.front().path;
  if (survivors)
    std::erase_if(logs, [finished = finished_rounds(logs)](const ProcessLog& log) {
      return log.end() == nullptr || ended_early(log, finished);
    });
  if (logs.empty())
    return data_error(
        fmt::format("no log in {} has an end record, for example {}: no process survived",
                    folder.string(), example.string()));
  GOSSAMER_TRY(auto parts, logs_by_part(folder, std::move(logs)));
  std::set<int> without;
  for (const std::vector<ProcessLog>& some : parts) {
    GOSSAMER_TRY(const std::vector<int> of_part,
                 peers_without_log(folder, parts.front().front(), some));
    GOSSAMER_TRY_STATUS(check_all_finished(some));
    without.insert(of_part.begin(), of_part.end());
  }
  GOSSAMER_TRY(const Config config, read_config(parts, overrides));
  const std::vector<int> missing(without.begin(), without.end());
  leave_out(parts, missing);
  const std::vector<ProcessLog>& first = parts.front();
  if (first.empty())
    return data_error(
        fmt::format("in {} no replica has the files of all its workers", folder.string()));
  std::optional<topology::Participants> open;
  if (config.run.open) {
    GOSSAMER_TRY(open, open_participants(config.run, first));
  }
  RunTotals totals = totals_of(parts);
  for (const int peer : missing)
    (took_part(peer, open) ? totals.lost_peers : totals.unseen_peers).push_back(peer);
  if (!totals.lost_peers.empty() && !survivors)
    return files_missing(folder, totals.lost_peers, first.front().peers);
  GOSSAMER_TRY(const Setup setup, read_setup(parts, config, open));
  GOSSAMER_TRY(const auto rows, read_rows(setup, parts));
  RowViews views;
  for (const auto& [peer, row] : rows)
    if (!setup.is_server(peer)) views.emplace_back(row);
  if (honest_peers(setup, present_workers(setup, totals.rounds, totals.lost_peers)).empty())
    return data_error(fmt::format(
        "{}: all peers whose files are here are hostile (attack.peers), and a summary is about the "
        "others; copy their run folders here",
        folder.string()));
  return make_summary(setup, totals, views);
}

}  // namespace gossamer::peer
