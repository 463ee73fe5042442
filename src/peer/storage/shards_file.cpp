#include "peer/storage/shards_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "peer/storage/files.hpp"

namespace gossamer::peer {
namespace {

namespace fs = std::filesystem;
using train::ShardSummary;

constexpr std::string_view kFilePrefix = "shards-", kFileSuffix = ".json";
constexpr std::uint64_t kMaxShardsFileBytes = std::uint64_t{256} << 20;

Json json_of(const std::string& run_id, const Shards& shards) {
  Json json;
  json["schema"] = 1;
  json["run_id"] = run_id;
  json["peers"] = Json::array();
  for (const ShardSummary& shard : shards) {
    Json peer;
    peer["samples"] = shard.samples;
    peer["means"] = shard.means;
    peer["variances"] = shard.variances;
    json["peers"].push_back(std::move(peer));
  }
  return json;
}

/// Nothing if the values are no shards of `peers` peers with moments of `features` features.
std::optional<Shards> shards_in(const Json& json, std::size_t peers, std::size_t features) {
  if (!json.is_object() || json.value("schema", 0) != 1 || !json.contains("run_id") ||
      !json["run_id"].is_string() || !json.contains("peers") || json["peers"].size() != peers)
    return std::nullopt;
  Shards shards;
  for (const Json& peer : json["peers"]) {
    ShardSummary shard{peer.at("samples").get<std::uint64_t>(),
                       peer.at("means").get<std::vector<double>>(),
                       peer.at("variances").get<std::vector<double>>()};
    if (!train::is_shard_size(shard.samples) || shard.means.size() != features ||
        shard.variances.size() != features)
      return std::nullopt;
    for (std::size_t f = 0; f < features; ++f)
      if (!train::is_moment(shard.means[f], shard.variances[f])) return std::nullopt;
    shards.push_back(std::move(shard));
  }
  return shards;
}

fs::path file_of(const fs::path& folder, int node) {
  return folder / fmt::format("{}{}{}", kFilePrefix, node, kFileSuffix);
}

/// The file of `node`, or another of the folder; none if it has none.
std::optional<fs::path> find_file(const fs::path& folder, int node) {
  const fs::path own = file_of(folder, node);
  std::error_code ignored;
  if (fs::exists(own, ignored)) return own;
  std::vector<fs::path> others;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kFilePrefix) && name.ends_with(kFileSuffix)) others.push_back(entry);
  }
  return others.empty() ? std::nullopt : std::optional(std::ranges::min(others));
}

}  // namespace

Status record_shards(const fs::path& folder, int node, const std::string& run_id,
                     const Shards& shards, std::size_t features, bool resumed) {
  if (!resumed || !find_file(folder, node))
    return write_file(file_of(folder, node), text_of(json_of(run_id, shards)) + "\n");
  const auto then = read_shards(folder, node, run_id, shards, features);
  return then.ok() ? Status() : Status(then.error());
}

Result<Shards> parse_shards(std::string_view text, const fs::path& path, const std::string& run_id,
                            std::size_t peers, std::size_t features) {
  const auto parsed = parse_json(text);
  if (!parsed.ok()) return damaged_file(path, parsed.error().message);
  std::optional<Shards> shards;
  try {
    shards = shards_in(*parsed, peers, features);
  } catch (const Json::exception&) {  // a value of another type
  }
  if (!shards)
    return damaged_file(
        path,
        fmt::format("it is no list of the shards of {} peers, with {} features", peers, features));
  if (const auto there = (*parsed)["run_id"].get<std::string>(); there != run_id)
    return invalid_error(
        fmt::format("{} is of the run {}, and this is the run {}", path.string(), there, run_id));
  return std::move(*shards);
}

Result<Shards> read_shards(const fs::path& folder, int node, const std::string& run_id,
                           const Shards& own, std::size_t features) {
  const std::optional<fs::path> path = find_file(folder, node);
  if (!path)
    return data_error(fmt::format(
        "{}: there is no such file, which has the agreed summaries of the peers' own data: copy a "
        "{}*{} of another run folder there",
        file_of(folder, node).string(), kFilePrefix, kFileSuffix));
  GOSSAMER_TRY(const std::string text, read_file(*path, kMaxShardsFileBytes));
  GOSSAMER_TRY(Shards shards, parse_shards(text, *path, run_id, own.size(), features));
  for (std::size_t p = 0; p < own.size(); ++p) {
    const ShardSummary& then = shards[p];
    if (own[p].samples == 0 || own[p] == then) continue;
    return data_error(fmt::format(
        "own data: the samples of peer {} are not those with which the run began: {} samples "
        "then, {} now{}; bring back the data on the machine of that peer, or begin a new run",
        p, then.samples, own[p].samples,
        then.samples == own[p].samples ? ", of other values" : ""));
  }
  return shards;
}

}  // namespace gossamer::peer
