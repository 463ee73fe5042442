#include "peer/collect.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>

#include "peer/run_files.hpp"
#include "peer/setup.hpp"
#include "peer/summary.hpp"

namespace gossamer::peer {
namespace {

namespace fs = std::filesystem;

Error bad(std::string message) { return {ErrorKind::data, std::move(message)}; }

/// All peers there, once each, of one run.
Status check_complete(const fs::path& folder, const std::vector<ProcessLog>& logs) {
  const Json& first = logs.front().header;
  const int n = first.value("peers", 0);
  const bool one_node = first["config"]["algorithm"]["kind"] == "centralized";
  std::vector<int> seen(static_cast<std::size_t>(std::max(n, 0)));
  for (const ProcessLog& log : logs) {
    if (log.header["run_id"] != first["run_id"])
      return bad(fmt::format("{} is of run {}, {} of run {}: one folder, one run", log.path.string(),
                             text_of(log.header["run_id"]), logs.front().path.string(), text_of(first["run_id"])));
    for (int peer : log.header["hosted"].get<std::vector<int>>()) {
      if (peer < 0 || peer >= n) return bad(fmt::format("{}: peer {} of {}", log.path.string(), peer, n));
      if (++seen[static_cast<std::size_t>(peer)] > 1)
        return bad(fmt::format("{}: peer {} has two logs below {}", log.path.string(), peer, folder.string()));
    }
    if (log.end() == nullptr)
      return bad(fmt::format("{} has no end: that process still runs, or was killed", log.path.string()));
  }
  std::vector<int> missing;
  for (int peer = 0; peer < (one_node ? 1 : n); ++peer)
    if (seen[static_cast<std::size_t>(peer)] == 0) missing.push_back(peer);
  if (!missing.empty())
    return bad(fmt::format("below {} the files of {} of {} peers are missing: {}; copy their run folders here",
                           folder.string(), missing.size(), n, fmt::join(missing, ", ")));
  return {};
}

/// Final rows of every peer from the processes' safetensors.
Result<std::map<int, std::vector<float>>> read_rows(const Setup& setup, const std::vector<ProcessLog>& logs) {
  std::map<int, std::vector<float>> rows;
  for (const ProcessLog& log : logs) {
    const fs::path path = log.path.parent_path() / fmt::format("final-{}.safetensors", log.lowest_peer);
    GOSSAMER_TRY(const TensorFile file, read_safetensors(path));
    if (const auto id = file.metadata.find("run_id"); id == file.metadata.end() || id->second != setup.config.run_id())
      return bad(fmt::format("{} is of another run than {}", path.string(), log.path.string()));
    for (int peer : log.header["hosted"].get<std::vector<int>>()) {
      const std::string prefix = fmt::format("peer{}.", peer);
      std::vector<float>& row = rows[peer];
      for (const Tensor& tensor : file.tensors)  // in file order, which is the row's
        if (tensor.name.starts_with(prefix)) row.insert(row.end(), tensor.values.begin(), tensor.values.end());
      if (row.size() != setup.parameters)
        return bad(fmt::format("{} holds {} values of peer {}, not {}", path.string(), row.size(), peer, setup.parameters));
    }
  }
  return rows;
}

RunTotals totals_of(const std::vector<ProcessLog>& logs) {
  RunTotals totals;
  totals.rounds = std::numeric_limits<std::uint64_t>::max();
  totals.virtual_seconds = logs.front().header["time"] == "virtual" ? 0 : std::numeric_limits<double>::quiet_NaN();
  std::map<int, double> losses;
  for (const ProcessLog& log : logs) {
    const Json& end = *log.end();
    if (end["reason"] != "finished" && totals.reason == "finished") totals.reason = end["reason"];
    totals.rounds = std::min(totals.rounds, end["rounds"].get<std::uint64_t>());
    totals.wall_seconds = std::max(totals.wall_seconds, end["wall_seconds"].get<double>());
    if (log.header["time"] == "virtual")
      totals.virtual_seconds = std::max(totals.virtual_seconds, end["seconds"].get<double>());
    totals.node_steps += end["node_steps"].get<std::uint64_t>();
    totals.bytes_sent += end["bytes_sent"].get<std::uint64_t>();
    for (int peer : log.header["hosted"].get<std::vector<int>>()) losses[peer] = std::numeric_limits<double>::quiet_NaN();
    for (const Json& record : log.records)
      if (record["record"] == "round" && !record["train_loss"].is_null()) losses[record["peer"]] = record["train_loss"];
  }
  for (const auto& [peer, loss] : losses) totals.train_losses.push_back(loss);
  return totals;
}

/// The setup that the processes ran with, made again here.
Result<Setup> read_setup(const ProcessLog& log, const std::vector<Override>& overrides) {
  const std::string path = (log.path.parent_path() / fmt::format("resolved-{}.toml", log.lowest_peer)).string();
  GOSSAMER_TRY(const Config written, load_config(path, {}));
  GOSSAMER_TRY(Config config, load_config(path, overrides));
  if (config.shared_hash() != written.shared_hash() || config.run_id() != written.run_id())
    return Error{ErrorKind::invalid, fmt::format("--set {}: that would be another run than the one in {}",
                                                 fmt::join(overrides, " --set "), path)};
  return make_setup(std::move(config));
}

}  // namespace

Result<Json> collect(const fs::path& folder, const std::vector<Override>& overrides) {
  GOSSAMER_TRY(const std::vector<ProcessLog> logs, read_logs(folder));
  try {
    GOSSAMER_TRY_STATUS(check_complete(folder, logs));
    GOSSAMER_TRY(const Setup setup, read_setup(logs.front(), overrides));
    GOSSAMER_TRY(const auto rows, read_rows(setup, logs));
    RowViews views;
    for (const auto& [peer, row] : rows) views.emplace_back(row);
    Json summary = make_summary(setup, totals_of(logs), views);
    GOSSAMER_TRY_STATUS(write_file(folder / "summary.json", text_of(summary, 2) + "\n"));
    return summary;
  } catch (const Json::exception& error) {
    return bad(fmt::format("{}: a log is not what this version writes: {}", folder.string(), error.what()));
  }
}

}  // namespace gossamer::peer
