#include "peer/setup/hosted_ids.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/id_list.hpp"
#include "gossip/algorithm.hpp"
#include "peer/setup/launchers.hpp"

namespace gossamer::peer {
namespace {

bool read_number(std::string_view text, int& number) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failure == std::errc() && end == text.data() + text.size() && number >= 0 &&
         number <= kLargestId;
}

Result<LauncherRank> rank_of(const Launcher& launcher, const std::string& rank_text,
                             const std::string& size_text) {
  LauncherRank found{.variable = launcher.size};
  if (!read_number(rank_text, found.rank) || !read_number(size_text, found.size) ||
      found.rank >= found.size)
    return invalid_error(fmt::format("{}: '{}' is no rank among the '{}' processes of {}",
                                     launcher.rank, rank_text, size_text, launcher.size));
  return found;
}

/// The nodes of a process by its rank among the processes of the launcher.
Result<std::vector<int>> ids_in_environment(const Launcher& launcher, const std::string& rank_text,
                                            int nodes, const Environment& environment) {
  const char* size_text = environment(launcher.size);
  if (size_text == nullptr) return parse_ids(rank_text, launcher.rank);
  GOSSAMER_TRY(const LauncherRank found, rank_of(launcher, rank_text, size_text));
  if (found.size > nodes)
    return invalid_error(
        fmt::format("{}: {} processes were started, and the network has {} node{} (peers and "
                    "servers): start {}, "
                    "or set run.peers",
                    launcher.size, found.size, nodes, nodes == 1 ? "" : "s", nodes));
  return ids_of_rank(found.rank, found.size, nodes);
}

}  // namespace

std::vector<int> ids_of_rank(int rank, int size, int nodes) {
  const auto first = [&](std::int64_t r) { return static_cast<int>(r * nodes / size); };
  std::vector<int> ids;
  for (int id = first(rank); id < first(rank + 1); ++id) ids.push_back(id);
  return ids;
}

Result<int> node_count(const Config& config) {
  GOSSAMER_TRY(const auto algorithm,
               gossip::make_algorithm(config.algorithm.kind, config.algorithm.values));
  const gossip::AlgorithmRequirements needs = algorithm->requirements();
  return (needs.one_node ? 1 : config.run.peers) + needs.servers;
}

Status check_ids(const Config& config, const std::vector<int>& ids) {
  const std::string& kind = config.algorithm.kind;
  GOSSAMER_TRY(const auto algorithm, gossip::make_algorithm(kind, config.algorithm.values));
  const gossip::AlgorithmRequirements needs = algorithm->requirements();
  const int n = config.run.peers, s = needs.servers;
  if (needs.one_node)
    return invalid_error(
        fmt::format("algorithm.kind: '{}' runs in one process: use gossamer run", kind));
  for (const int id : ids)
    if (id < 0 || id >= n + s)
      return invalid_error(fmt::format(
          "peer id {} is not one of run.peers = {}: ids are 0 to {}{}", id, n, n - 1,
          s == 0   ? ""
          : s == 1 ? fmt::format(", and {} for the server of '{}'", n, kind)
                   : fmt::format(", and {} to {} for the servers of '{}'", n, n + s - 1, kind)));
  if (config.run.open && ids.size() > 1)
    return invalid_error("run.open: each process has one peer; give one id");
  return {};
}

Result<std::vector<int>> given_ids(const std::string& option, const std::string& origin, int nodes,
                                   const Environment& environment) {
  if (!option.empty()) return parse_ids(option, origin);
  if (const char* ids = environment("GOSSAMER_ID")) return parse_ids(ids, "GOSSAMER_ID");
  for (const Launcher& launcher : kLaunchers)
    if (const char* rank = environment(launcher.rank))
      return ids_in_environment(launcher, rank, nodes, environment);
  return std::vector<int>();
}

Result<std::optional<LauncherRank>> launcher_rank(const Environment& environment) {
  for (const Launcher& launcher : kLaunchers) {
    const char* rank = environment(launcher.rank);
    if (rank == nullptr) continue;
    const char* size = environment(launcher.size);
    if (size == nullptr) break;
    GOSSAMER_TRY(LauncherRank found, rank_of(launcher, rank, size));
    return std::optional(std::move(found));
  }
  return std::optional<LauncherRank>();
}

Error no_id(const std::string& origin) {
  return invalid_error(
      fmt::format("the id of this peer is missing: give {}, or set GOSSAMER_ID (RANK, "
                  "SLURM_PROCID, OMPI_COMM_WORLD_RANK and PMI_RANK are read too), or net.seeds, "
                  "with which each process claims an id",
                  origin));
}

}  // namespace gossamer::peer
