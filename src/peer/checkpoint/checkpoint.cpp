#include "peer/checkpoint/checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/hash.hpp"
#include "peer/config/config_json.hpp"
#include "peer/setup/node_tensors.hpp"
#include "peer/storage/files.hpp"
#include "peer/version.hpp"

namespace gossamer::peer {
namespace {

namespace fs = std::filesystem;

constexpr int kFormat = 2;
constexpr std::uint64_t kMaxManifestBytes = 64 << 20;  // 0.5 KiB a node and 60 bytes a tensor
constexpr const char* kChecksum = "checksum";

Json to_json(const NodeState& state) {
  const NodeMetrics& metrics = state.metrics;
  const gossip::Staleness& staleness = metrics.staleness;
  Json json{
      {"node", state.node},
      {"local_steps", state.steps},
      {"counters", state.counters},
      {"nanoseconds", metrics.time.count()},
      {"bytes_sent", metrics.traffic.bytes_sent},
      {"bytes_received", metrics.traffic.bytes_received},
      {"train_seconds", metrics.times.train_seconds},
      {"wait_seconds", metrics.times.wait_seconds},
      {"mix_seconds", metrics.mix_seconds},
      {"steps_recorded", metrics.steps_recorded},
      {"loss_sum", metrics.loss.sum},
      {"loss_count", metrics.loss.count},
      {"staleness",
       {{"pushes", staleness.pushes}, {"sum", staleness.sum}, {"largest", staleness.largest}}}};
  if (const auto& program = state.program)
    json["program"] = {
        {"offset", program->offset}, {"bytes", program->bytes}, {"hash", program->hash}};
  if (!state.participants.empty()) json["participants"] = state.participants;
  if (state.rounds_left_out > 0) json["rounds_left_out"] = state.rounds_left_out;
  return json;
}

/// A number ≥ 0. Throws Json::exception for anything else: Json would convert −1 to 2⁶⁴ − 1.
std::uint64_t count(const Json& json) { return json.get_ref<const std::uint64_t&>(); }

NodeState node_from(const Json& json) {
  NodeState state;
  NodeMetrics& metrics = state.metrics;
  state.node = static_cast<int>(std::min<std::uint64_t>(
      count(json.at("node")), std::numeric_limits<int>::max()));  // check_nodes refuses that one
  state.steps = count(json.at("local_steps"));
  for (const Json& counter : json.at("counters")) state.counters.push_back(count(counter));
  metrics.time = gossip::Time(json.at("nanoseconds").get<std::int64_t>());
  metrics.traffic.bytes_sent = count(json.at("bytes_sent"));
  metrics.traffic.bytes_received = count(json.at("bytes_received"));
  json.at("train_seconds").get_to(metrics.times.train_seconds);
  json.at("wait_seconds").get_to(metrics.times.wait_seconds);
  json.at("mix_seconds").get_to(metrics.mix_seconds);
  metrics.steps_recorded = count(json.at("steps_recorded"));
  json.at("loss_sum").get_to(metrics.loss.sum);
  metrics.loss.count = count(json.at("loss_count"));
  const Json& staleness = json.at("staleness");
  metrics.staleness = {count(staleness.at("pushes")), count(staleness.at("sum")),
                       count(staleness.at("largest"))};
  if (const auto program = json.find("program"); program != json.end())
    state.program = {count(program->at("offset")), count(program->at("bytes")),
                     program->at("hash").get<std::string>()};
  if (const auto ids = json.find("participants"); ids != json.end())
    ids->get_to(state.participants);
  if (const auto rounds = json.find("rounds_left_out"); rounds != json.end())
    state.rounds_left_out = count(*rounds);
  return state;
}

std::string checksum_of(const Json& json) { return hash_hex(text_of(json)); }

Manifest manifest_from(const Json& json) {
  Manifest manifest;
  manifest.round = count(json.at("round"));
  json.at("run_id").get_to(manifest.run_id);
  if (const auto part = json.find("part"); part != json.end())
    manifest.part = static_cast<int>(std::min<std::uint64_t>(
        count(*part), std::numeric_limits<int>::max()));  // no model has that one
  json.at("configuration").get_to(manifest.configuration);
  manifest.config = json.at("config");
  if (!manifest.config.is_object())
    throw Json::other_error::create(501, "config is no object", &json);
  json.at("wall_seconds").get_to(manifest.wall_seconds);
  for (const Json& node : json.at("nodes")) manifest.nodes.push_back(node_from(node));
  json.at("header_hash").get_to(manifest.header_hash);
  for (const Json& tensor : json.at("tensors"))
    manifest.tensors.emplace_back(tensor.at(0).get<std::string>(), tensor.at(1).get<std::string>());
  return manifest;
}

Status check_configuration(const Setup& setup, const fs::path& path, const Manifest& manifest) {
  if (manifest.configuration == checkpoint_configuration(setup, manifest.part)) return {};
  const Json all = config_json(setup.config);
  Json here = all, there = manifest.config;
  if (!manifest.part)
    for (Json* config : {&here, &there}) config->erase("split");
  auto difference = config_difference(setup.config, here, there);
  // Of whole models, [split] matters only where a codec encodes parts.
  if (!difference) difference = config_difference(setup.config, all, manifest.config);
  const std::string what =
      difference ? fmt::format("{} is {} there and {} here", difference->name,
                               text_of(difference->there), text_of(difference->here))
                 : std::string("the content of the data, or of the model's file, differs");
  const char* const remedy =
      manifest.part
          ? "resume with the same [split] and --resume auto, or from what `gossamer collect "
            "--checkpoint` puts together"
          : "use the configuration that wrote it, or choose another folder "
            "(checkpoint.folder, --out)";
  return invalid_error(
      fmt::format("{} is from another configuration: {}; {}", path.string(), what, remedy));
}

bool is_duration(double seconds) { return seconds >= 0 && seconds < 1e10; }

/// Whether the run can go on counting from these figures: none is negative, and none is so large
/// that it would begin again at 0.
bool are_plausible(const NodeState& state) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 61;  // 73 years in nanoseconds
  const NodeMetrics& metrics = state.metrics;
  const std::uint64_t counts[] = {metrics.traffic.bytes_sent, metrics.traffic.bytes_received,
                                  metrics.loss.count,         metrics.staleness.pushes,
                                  metrics.staleness.sum,      metrics.staleness.largest};
  return metrics.time.count() >= 0 && static_cast<std::uint64_t>(metrics.time.count()) < kMost &&
         is_duration(metrics.times.train_seconds) && is_duration(metrics.times.wait_seconds) &&
         is_duration(metrics.mix_seconds) && metrics.steps_recorded <= state.steps &&
         std::ranges::all_of(counts, [](std::uint64_t each) { return each < kMost; });
}

/// A checksum is no signature, so the numbers that the run will count on are checked too.
Status check_nodes(const Setup& setup, const fs::path& path, const Manifest& manifest) {
  const auto& split = setup.workload->spec().split;
  if (const std::size_t parts = split ? split->parts().size() : 0;
      manifest.part && static_cast<std::size_t>(*manifest.part) >= parts)
    return damaged_file(
        path, fmt::format("it is of part {} of a model that has {}", *manifest.part, parts));
  if (manifest.round > setup.config.run.rounds)
    return damaged_file(path, fmt::format("it is of round {}, and the run has {} rounds",
                                          manifest.round, setup.config.run.rounds));
  if (!is_duration(manifest.wall_seconds))
    return damaged_file(path, fmt::format("the run took {} s before", manifest.wall_seconds));
  int lowest = 0;
  for (const NodeState& state : manifest.nodes) {
    if (state.node < lowest || state.node >= setup.nodes())
      return damaged_file(
          path, fmt::format("node {} is out of order, or the run has no such node", state.node));
    if (state.steps > gossip::kMostLocalSteps)
      return damaged_file(path, fmt::format("node {} has {} local steps", state.node, state.steps));
    if (!are_plausible(state) || state.rounds_left_out > manifest.round)
      return damaged_file(
          path, fmt::format("a time or a count of node {} is negative or too large", state.node));
    lowest = state.node + 1;
  }
  return {};
}

/// The tensors of the rows of a part, or of a whole model, and the values of such a row.
struct HeldRows {
  std::span<const train::ParameterBlock> blocks;
  std::size_t parameters = 0;

  static HeldRows of(const Setup& setup, std::optional<int> part) {
    const WorkloadSpec& spec = setup.workload->spec();
    if (part == setup.part) return {spec.blocks, setup.parameters};
    if (part) {
      const train::ModelPart& held = spec.split->parts().at(static_cast<std::size_t>(*part));
      return {held.blocks, held.parameters};
    }
    return {spec.split->blocks(), spec.split->parameters()};
  }
};

/// Checks the hash of every tensor, and that every tensor of the nodes' states exists.
Status check_tensors(const Setup& setup, const Manifest& manifest, SafetensorsFile& file) {
  const auto& infos = file.header().tensors;
  if (hash_hex(file.header().bytes) != manifest.header_hash ||
      infos.size() != manifest.tensors.size())
    return damaged_file(file.path(), "its header does not match its manifest");
  std::vector<float> values;
  for (std::size_t i = 0; i < infos.size(); ++i) {
    values.resize(infos[i].values);
    GOSSAMER_TRY_STATUS(file.read(infos[i], 0, values));
    if (manifest.tensors[i].first != infos[i].name ||
        manifest.tensors[i].second != hash_hex(values))
      return damaged_file(
          file.path(),
          fmt::format("the hash of tensor {} does not match its manifest", infos[i].name));
  }
  for (const NodeState& state : manifest.nodes)
    for (const StateTensor& tensor : state_tensors(setup, state.node, manifest.part)) {
      const TensorInfo* info = file.header().find(tensor.name);
      if (info == nullptr || info->shape != tensor.shape)
        return damaged_file(
            file.path(),
            fmt::format("tensor {} is missing, or its shape is not that of this version",
                        tensor.name));
    }
  return {};
}

}  // namespace

std::vector<StateTensor> state_tensors(const Setup& setup, int node) {
  return state_tensors(setup, node, setup.part);
}

std::vector<StateTensor> state_tensors(const Setup& setup, int node, std::optional<int> part) {
  const std::string prefix = tensor_prefix(setup, node);
  const HeldRows held = HeldRows::of(setup, part);
  const std::size_t d = held.parameters;
  std::vector<StateTensor> tensors;
  const auto add = [&](const std::string& name, std::vector<std::int64_t> shape, std::size_t row,
                       std::size_t first, std::size_t length) {
    tensors.push_back({fmt::format("{}.{}", prefix, name), std::move(shape), row, first, length});
    std::ranges::replace(tensors.back().name, ' ', '_');
  };
  const auto flat = [&](const std::string& name, std::size_t row, std::size_t first,
                        std::size_t length) {
    add(name, {static_cast<std::int64_t>(length)}, row, first, length);
  };
  for (const train::ParameterBlock& block : held.blocks)
    add(block.name, {block.shape.begin(), block.shape.end()}, 0, block.offset, block.length),
        tensors.back().is_parameter = true;
  const std::vector<gossip::RowSpec> specs = setup.algorithm->rows(*setup.schedule);
  if (specs.front().extra > 0) flat("state.x.extra", 0, d, specs.front().extra);
  for (std::size_t k = 1; k < specs.size(); ++k)
    if (specs[k].survives) flat("state." + specs[k].name, k, 0, specs[k].length(d));
  std::size_t row = specs.size();
  for (const std::string& name : setup.workload->spec().optimizer_rows)
    flat("state.optimizer." + name, row++, 0, d);
  return tensors;
}

std::string checkpoint_configuration(const Setup& setup, std::optional<int> part) {
  return part ? setup.configuration_hash() : setup.uncut_configuration_hash();
}

std::string manifest_text(const Manifest& manifest) {
  Json json;
  json["format"] = kFormat;
  json["gossamer"] = kVersion;
  json["run_id"] = manifest.run_id;
  json["round"] = manifest.round;
  json["wall_seconds"] = manifest.wall_seconds;
  if (manifest.part) json["part"] = *manifest.part;
  json["configuration"] = manifest.configuration;
  json["config"] = manifest.config;
  json["nodes"] = Json::array();
  for (const NodeState& state : manifest.nodes) json["nodes"].push_back(to_json(state));
  json["header_hash"] = manifest.header_hash;
  json["tensors"] = Json::array();
  for (const auto& [name, hash] : manifest.tensors) json["tensors"].push_back({name, hash});
  json[kChecksum] = checksum_of(json);
  return text_of(json, 1) + "\n";
}

Result<Manifest> read_manifest(const fs::path& path) {
  GOSSAMER_TRY(const std::string content, read_file(path, kMaxManifestBytes));
  auto parsed = parse_json(content);
  if (!parsed.ok()) return damaged_file(path, parsed.error().message);
  Json json = std::move(*parsed);
  if (!json.is_object()) return damaged_file(path, "it is not a JSON object");
  if (const auto format = json.find("format"); format != json.end() && *format != kFormat)
    return data_error(
        fmt::format("{} has format {}, and this version of gossamer ({}) reads format {}",
                    path.string(), text_of(*format), kVersion, kFormat));
  const auto checksum = json.find(kChecksum);
  if (checksum == json.end() || !checksum->is_string())
    return damaged_file(path, "its checksum is missing");
  const std::string expected = *checksum;
  json.erase(kChecksum);
  if (checksum_of(json) != expected) return damaged_file(path, "its checksum does not match");
  try {
    return manifest_from(json);
  } catch (const Json::exception& error) {
    return damaged_file(path, error.what());
  }
}

fs::path tensors_path(const fs::path& manifest) {
  return fs::path(manifest).replace_extension(".safetensors");
}

fs::path state_path(const fs::path& manifest) {
  return fs::path(manifest).replace_extension(".state");
}

Result<std::string> read_program_state(const fs::path& path, const ProgramState& state) {
  GOSSAMER_TRY(const InputFile file, InputFile::open(path));
  if (state.bytes > file.bytes() || state.offset > file.bytes() - state.bytes)
    return damaged_file(path, "it is shorter than its manifest says");
  std::string bytes(state.bytes, '\0');
  GOSSAMER_TRY_STATUS(file.read_exactly(state.offset, bytes));
  if (hash_hex(bytes) != state.hash)
    return damaged_file(path, "the hash of a state does not match its manifest");
  return bytes;
}

Result<Manifest> verify_checkpoint(const Setup& setup, const fs::path& path) {
  GOSSAMER_TRY(Manifest manifest, read_manifest(path));
  GOSSAMER_TRY_STATUS(check_configuration(setup, path, manifest));
  GOSSAMER_TRY_STATUS(check_nodes(setup, path, manifest));
  GOSSAMER_TRY(SafetensorsFile file, SafetensorsFile::open(tensors_path(path)));
  GOSSAMER_TRY_STATUS(check_tensors(setup, manifest, file));
  for (const NodeState& state : manifest.nodes)
    if (state.program) GOSSAMER_TRY_STATUS(read_program_state(state_path(path), *state.program));
  return manifest;
}

}  // namespace gossamer::peer
