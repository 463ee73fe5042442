#include "peer/log/run_setup.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "peer/config/config_json.hpp"
#include "peer/log/resolved_config.hpp"
#include "peer/setup/untrained_workload.hpp"
#include "peer/storage/safetensors.hpp"
#include "peer/storage/shards_file.hpp"

namespace gossamer::peer {
namespace {

namespace fs = std::filesystem;

/// Checks that the headers of all logs have the configuration `written`, which was read from the
/// first process's resolved file.
Status check_same_config(const Config& written, const fs::path& resolved,
                         const std::vector<ProcessLog>& logs) {
  for (const ProcessLog& log : logs)
    if (const auto found =
            config_difference(written, log.header.at("config"), config_json(written)))
      return data_error(fmt::format(
          "{}:1: config: {} is {} here but {} in {}; all processes of a run must have the same "
          "configuration",
          log.path.string(), found->name, text_of(found->here), text_of(found->there),
          resolved.string()));
  return {};
}

/// Of what was trained on a program's model or on data that are not here: the tensors of its first
/// peer, without training.
Result<std::shared_ptr<Workload>> recorded_workload(
    const std::vector<std::vector<ProcessLog>>& parts, std::uint64_t seed) {
  std::vector<train::ParameterBlock> blocks;
  std::size_t offset = 0;
  for (const std::vector<ProcessLog>& logs : parts) {
    const ProcessLog& log = logs.front();
    GOSSAMER_TRY(const TensorFile file, read_safetensors(final_path(log)));
    const std::string prefix = fmt::format("peer{}.", log.lowest_peer);
    for (const Tensor& tensor : file.tensors) {
      if (!tensor.name.starts_with(prefix)) continue;
      train::ParameterBlock block;
      block.name = tensor.name.substr(prefix.size());
      block.shape.assign(tensor.shape.begin(), tensor.shape.end());
      block.offset = offset;
      block.length = tensor.values.size();
      offset += block.length;
      blocks.push_back(std::move(block));
    }
  }
  return make_recorded_workload(std::move(blocks), seed);
}

/// The parameters of a replica of which `log` is the log of one worker: those of the other parts
/// are by the first log of each.
std::uint64_t whole_row(const std::vector<std::vector<ProcessLog>>& parts, const ProcessLog& log) {
  const auto parameters = [](const ProcessLog& of) {
    return of.header.at("parameters").get<std::uint64_t>();
  };
  std::uint64_t row = parameters(log);
  for (const std::vector<ProcessLog>& logs : parts)
    if (logs.front().part != log.part) row += parameters(logs.front());
  return row;
}

/// Whether the data are the peers' own, and the test samples a file that can be read here.
bool has_own_data_and_tests(const Config& config) {
  const auto tests = config.data.values.find("test_path");
  if (config.shards.partition != "own" || config.shards.evaluate != "test" ||
      config.model.kind == kExternalModel || tests == config.data.values.end())
    return false;
  const auto& file = std::get<std::string>(tests->second);
  return !file.empty() && train::file_of_peer(file, 0) == file;  // else each peer has its own
}

}  // namespace

Status check_same_run(const ProcessLog& first, const ProcessLog& other) {
  const auto of = [](const ProcessLog& log) {
    return fmt::format("of run {} ({} peers, {} time)", text_of(log.header.at("run_id")), log.peers,
                       text_of(log.header.at("time")));
  };
  if (of(other) == of(first) && other.servers == first.servers) return {};
  return data_error(fmt::format("{} is {}, but {} is {}: a folder may contain only one run",
                                other.path.string(), of(other), first.path.string(), of(first)));
}

bool can_build_model(const Config& config) {
  return config.model.kind != kExternalModel &&
         (config.shards.partition != "own" || has_own_data_and_tests(config));
}

Result<Config> read_config(const std::vector<std::vector<ProcessLog>>& parts,
                           const std::vector<Override>& overrides) {
  const ProcessLog& first = parts.front().front();
  const std::string path = resolved_path(first.path.parent_path(), first.lowest_peer).string();
  GOSSAMER_TRY(const Config written, load_config(path, {}));
  for (const std::vector<ProcessLog>& logs : parts)
    GOSSAMER_TRY_STATUS(check_same_config(written, path, logs));
  GOSSAMER_TRY(Config config, load_config(path, overrides));
  if (config.shared_hash() == written.shared_hash() && config.run_id() == written.run_id())
    return config;
  return invalid_error(fmt::format("--set {}: with this it would be another run than the one in {}",
                                   fmt::join(overrides, " --set "), path));
}

Result<Setup> read_setup(const std::vector<std::vector<ProcessLog>>& parts, Config config,
                         const std::optional<topology::Participants>& open) {
  const ProcessLog& first = parts.front().front();
  config.local.device = "cpu";  // whatever device the peers used
  const RunOptions run = config.run;
  if (open) {
    config.run.participants = open->texts();
    config.run.open = false;
  }
  const bool tests_only = has_own_data_and_tests(config);
  std::shared_ptr<Workload> external;
  if (!can_build_model(config)) {
    if (parts.size() > 1 && config.model.split.parameters > 1)
      return data_error(fmt::format(
          "{}: parts of layers (split.parameters) are put together by the model, whose shape "
          "depends on samples that the peers kept (data.partition = own, without data.test_path); "
          "the whole models are in the final-N.safetensors beside the folders of the parts",
          first.path.string()));
    GOSSAMER_TRY(external, recorded_workload(parts, config.run.seed));
  }
  LocalRank local_rank;
  if (tests_only) local_rank.hosted = {config.run.peers};
  GOSSAMER_TRY(Setup setup, make_setup(std::move(config), local_rank, std::move(external)));
  setup.config.run = run;
  // In an open run the processes have agreed on no shards.
  if (const Shards unknown = setup.workload->own_shards(); !unknown.empty() && !open) {
    GOSSAMER_TRY(const Shards shards,
                 read_shards(first.path.parent_path(), first.lowest_peer, setup.config.run_id(),
                             unknown, setup.workload->standardised_features()));
    setup.workload->agree(shards);
  }
  for (const std::vector<ProcessLog>& some : parts)
    for (const ProcessLog& log : some)
      if (const std::uint64_t parameters = whole_row(parts, log);
          parameters != setup.parameters || log.peers != setup.config.run.peers ||
          log.servers != setup.servers())
        return data_error(fmt::format(
            "{}:1: parameters, peers and servers are {}, {} and {}, but by {} they are {}, {} and "
            "{}",
            log.path.string(), parameters, log.peers, log.servers,
            resolved_path(first.path.parent_path(), first.lowest_peer).string(), setup.parameters,
            setup.config.run.peers, setup.servers()));
  return setup;
}

}  // namespace gossamer::peer
