#include "peer/log/recorder.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <set>

#include "base/hash.hpp"
#include "peer/log/summary.hpp"
#include "peer/version.hpp"

namespace gossamer::peer {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostDeviations = 1024;  // of one record

Json deviation_json(const gossip::Deviation& deviation) {
  Json json{{"round", deviation.round}, {"from", deviation.from}};
  json["used_round"] = deviation.missing ? Json() : Json(deviation.used_round);
  if (deviation.channel > 0) json["row"] = deviation.channel;
  if (deviation.values > 0) json["values"] = deviation.values;
  return json;
}

Status make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    return Error{ErrorKind::data, fmt::format("cannot make the run folder {}: {}", folder.string(),
                                              error.message())};
  return {};
}

}  // namespace

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json to_json(const ParameterValue& value) {
  return std::visit([](const auto& content) { return Json(content); }, value);
}

Json config_json(const Config& config) {
  Json json;
  for (const auto& [section, values] : config.resolved) {
    json[section] = Json::object();
    for (const auto& [key, value] : values) json[section][key] = to_json(value);
  }
  return json;
}

Json report_json(const topology::TopologyReport& report) {
  Json json;
  json["topology"] = report.topology;
  json["peers"] = report.peers;
  json["weights"] = report.weights;
  json["edges"] = report.edges;
  json["degree_min"] = report.degree_min;
  json["degree_max"] = report.degree_max;
  json["diameter"] = report.diameter && report.diameter_exact ? Json(*report.diameter) : Json();
  json["period"] = report.period;
  json["symmetric"] = report.symmetric;
  json["doubly_stochastic"] = report.doubly_stochastic;
  json["connected"] = report.connected;
  json["spectral_gap"] = number(report.spectral_gap);
  json["bytes_per_round_per_peer"] = report.bytes_per_round_per_peer;
  return json;
}

Json edge_list(const topology::MixingSchedule& schedule, const topology::TopologyReport& report) {
  if (report.edges > kMostEdges) return {};
  std::set<std::pair<int, int>> edges;
  for (int t = 0; t < std::max(1, schedule.period()); ++t) {
    const auto matrix = schedule.at(static_cast<topology::Round>(t));
    for (int i = 0; i < matrix->peers(); ++i)
      for (int j : matrix->out_neighbours(i))
        if (!report.symmetric || i < j) edges.emplace(i, j);
  }
  Json list = Json::array();
  for (const auto& [i, j] : edges) list.push_back({i, j});
  return list;
}

bool is_logged(const Config& config, gossip::Round round) {
  if (round == 0 || round == config.run.rounds) return true;
  return config.log.every > 0 && round % static_cast<gossip::Round>(config.log.every) == 0;
}

std::string tensor_prefix(const Setup& setup, int node) {
  return fmt::format("{}{}", setup.is_server(node) ? "server" : "peer", node);
}

std::vector<Tensor> parameter_tensors(const Setup& setup, const std::vector<int>& peers,
                                      const RowViews& rows) {
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < peers.size(); ++i) {
    if (!setup.learner) {
      tensors.push_back({tensor_prefix(setup, peers[i]) + ".x",
                         {static_cast<std::int64_t>(rows[i].size())},
                         rows[i]});
      continue;
    }
    for (const train::ParameterBlock& block : setup.learner->blocks())
      tensors.push_back({fmt::format("{}.{}", tensor_prefix(setup, peers[i]), block.name),
                         {block.shape.begin(), block.shape.end()},
                         rows[i].subspan(block.offset, block.length)});
  }
  return tensors;
}

Result<std::unique_ptr<Recorder>> Recorder::create(const Setup& setup, std::vector<int> hosted,
                                                   const fs::path& folder,
                                                   const std::string& clock) {
  GOSSAMER_TRY_STATUS(make_folder(folder));
  std::unique_ptr<Recorder> recorder(new Recorder(setup, std::move(hosted), folder));
  if (fs::exists(recorder->log_path_))
    return Error{
        ErrorKind::data,
        fmt::format("{} holds a run already ({}): go on with it with --resume auto, choose another "
                    "folder with --out, or remove it",
                    folder.string(), recorder->log_path_.filename().string())};
  GOSSAMER_TRY_STATUS(recorder->begin(clock));
  return recorder;
}

Result<std::unique_ptr<Recorder>> Recorder::reopen(const Setup& setup, std::vector<int> hosted,
                                                   const fs::path& folder,
                                                   const std::string& clock) {
  std::unique_ptr<Recorder> recorder(new Recorder(setup, std::move(hosted), folder));
  const fs::path& path = recorder->log_path_;
  if (!fs::exists(path)) return create(setup, recorder->hosted_, folder, clock);
  GOSSAMER_TRY(std::optional<ResumedLog> log, ResumedLog::read(path, recorder->hosted_.front()));
  if (!log) {  // killed while it wrote the header
    std::error_code ignored;
    fs::remove(path, ignored);
    return create(setup, recorder->hosted_, folder, clock);
  }
  const Json ours = recorder->header(clock);
  for (const char* field : {"run_id", "peers", "servers", "hosted", "parameters", "time"})
    if (ours.at(field) != log->header().at(field))
      return Error{
          ErrorKind::data,
          fmt::format("{} cannot go on with this run: its {} is {}, and here it is {}; choose "
                      "another folder "
                      "with --out, and say with checkpoint.folder where the checkpoints are",
                      path.string(), field, text_of(log->header().at(field)),
                      text_of(ours.at(field)))};
  recorder->before_ = std::move(*log);
  recorder->goes_on_ = true;
  return recorder;
}

Recorder::Recorder(const Setup& setup, std::vector<int> hosted, fs::path folder)
    : setup_(setup),
      hosted_(std::move(hosted)),
      folder_(std::move(folder)),
      log_path_(folder_ / fmt::format("log-{}.jsonl", hosted_.front())),
      train_losses_(workers(), std::numeric_limits<double>::quiet_NaN()) {}

Status Recorder::begin(const std::string& clock) {
  GOSSAMER_TRY_STATUS(write_file(folder_ / fmt::format("resolved-{}.toml", hosted_.front()),
                                 setup_.config.to_toml()));
  GOSSAMER_TRY(RecordFile log, RecordFile::create(log_path_));
  log_.emplace(std::move(log));
  const Status written = log_->write(header(clock));
  if (!written.ok()) discard();
  return written;
}

Json Recorder::header(const std::string& clock) const {
  Json header;
  header["record"] = "header";
  header["schema"] = 1;
  header["version"] = kVersion;
  header["run_id"] = setup_.config.run_id();
  header["peers"] = setup_.config.run.peers;
  header["servers"] = setup_.servers();
  header["hosted"] = hosted_;
  header["parameters"] = setup_.parameters;
  header["device"] = setup_.device->description();
  header["time"] = clock;
  header["started"] = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  header["topology"] = report_json(setup_.report);
  header["topology"]["edge_list"] = edge_list(*setup_.schedule, setup_.report);
  header["config"] = config_json(setup_.config);
  return header;
}

Status Recorder::continue_from(gossip::Round round) {
  if (!before_) return {};
  if (round == 0 && before_->finished())
    return Error{ErrorKind::data, fmt::format("{} is of a run that finished, and there is no "
                                              "checkpoint to go on from: choose another "
                                              "folder with --out, or remove it",
                                              log_path_.string())};
  GOSSAMER_TRY(train_losses_, before_->cut(round));
  train_losses_.resize(workers());  // servers come after those who train, and have none
  const fs::path resolved = folder_ / fmt::format("resolved-{}.toml", hosted_.front());
  const std::string config = setup_.config.to_toml();
  // Mostly the same: of a peer that joins, others wait for us now, and a disk may take its time.
  if (const auto there = read_file(resolved); !there.ok() || *there != config)
    GOSSAMER_TRY_STATUS(write_file(resolved, config));
  GOSSAMER_TRY(RecordFile log, RecordFile::append(log_path_));
  log_.emplace(std::move(log));
  before_.reset();
  return {};
}

std::size_t Recorder::workers() const {
  const auto end = std::partition_point(hosted_.begin(), hosted_.end(),
                                        [this](int node) { return !setup_.is_server(node); });
  return static_cast<std::size_t>(end - hosted_.begin());
}

std::string reason_of(const Error& error) {
  switch (error.kind) {
    case ErrorKind::interrupted: return "interrupted";
    case ErrorKind::diverged: return "diverged";
    case ErrorKind::lost_peer: return "lost_peer";
    default: return "failed";
  }
}

Status Recorder::round(const RoundMetrics& figures) {
  const Config& config = setup_.config;
  const auto index = static_cast<std::size_t>(
      std::find(hosted_.begin(), hosted_.end(), figures.peer) - hosted_.begin());
  const bool is_server = setup_.is_server(figures.peer);
  if (figures.trained) train_losses_[index] = figures.train_loss;
  Json record;
  record["record"] = is_server ? "server" : "round";
  record["round"] = figures.round;
  record[is_server ? "server" : "peer"] = figures.peer;
  record["seconds"] = figures.seconds;
  if (!is_server) record["train_loss"] = number(figures.train_loss);
  record["test_loss"] = number(figures.test.loss);
  record["test_accuracy"] = number(figures.test.accuracy);
  record["bytes_sent"] = figures.traffic.bytes_sent;
  record["bytes_received"] = figures.traffic.bytes_received;
  record["train_seconds"] = figures.times.train_seconds;
  record["wait_seconds"] = figures.times.wait_seconds;
  if (!is_server) record["mix_seconds"] = figures.mix_seconds;
  if (!is_server && (config.log.sketch == "on" || (config.log.sketch == "auto" && !hosts_all()))) {
    std::vector<double> values(gpu::sketch_length(figures.row.size()));
    const gpu::SketchRequest<float> request{figures.row.data(), figures.row.size(), config.run.seed,
                                            values.data()};
    setup_.device->sketch(std::span(&request, 1));
    if (std::all_of(values.begin(), values.end(),
                    [](double value) { return std::isfinite(value); }))
      record["sketch"] = std::move(values);
  }
  if (const gossip::Staleness& staleness = figures.staleness; staleness.pushes > 0) {
    const double mean = static_cast<double>(staleness.sum) / static_cast<double>(staleness.pushes);
    record["staleness"] = {
        {"pushes", staleness.pushes}, {"mean", mean}, {"max", staleness.largest}};
  }
  GOSSAMER_TRY_STATUS(write(record));
  if (!hosts_all()) on_progress(record);
  if (is_server || !hosts_all()) return {};

  Snapshot& snapshot = snapshots_[figures.round];
  snapshot.rows.resize(workers());
  snapshot.rows[index].resize(figures.row.size());
  setup_.device->download(snapshot.rows[index].data(), figures.row.data(),
                          figures.row.size_bytes());
  if (++snapshot.arrived < workers()) return {};
  const Snapshot whole = std::move(snapshot);
  snapshots_.erase(figures.round);
  return network_record(figures.round, RowViews(whole.rows.begin(), whole.rows.end()));
}

Status Recorder::membership(const MembershipMetrics& figures) {
  if (!log_) return {};  // of a process that joins, and has not begun
  Json record;
  record["record"] = "membership";
  record["round"] = figures.round;
  record["peer"] = figures.peer;
  record["seconds"] = figures.seconds;
  record["event"] = figures.event;
  record["of"] = figures.of ? Json(*figures.of) : Json();
  record["within_reach"] = figures.within_reach ? Json(*figures.within_reach) : Json();
  return write(record);
}

Status Recorder::deviations(const DeviationMetrics& figures) {
  Json record;
  record["record"] = "deviations";
  record["round"] = figures.round;
  record["peer"] = figures.peer;
  for (std::size_t begin = 0; begin < figures.deviations.size(); begin += kMostDeviations) {
    Json& list = record["deviations"] = Json::array();
    for (std::size_t k = begin; k < std::min(begin + kMostDeviations, figures.deviations.size());
         ++k)
      list.push_back(deviation_json(figures.deviations[k]));
    GOSSAMER_TRY_STATUS(write(record));
  }
  return {};
}

Status Recorder::network_record(gossip::Round round, const RowViews& rows) {
  const NetworkMetrics figures = network_metrics(setup_, rows);
  Json record;
  record["record"] = "network";
  record["round"] = round;
  record["consensus_distance"] = number(figures.consensus_distance);
  record["averaged_loss"] = number(figures.averaged.loss);
  record["averaged_accuracy"] = number(figures.averaged.accuracy);
  record["distance_to_optimum"] = number(figures.distance_to_optimum);
  GOSSAMER_TRY_STATUS(write(record));
  on_progress(record);
  return {};
}

void Recorder::discard() {
  if (goes_on_) return;
  std::error_code ignored;
  fs::remove(log_path_, ignored);
  fs::remove(folder_ / fmt::format("resolved-{}.toml", hosted_.front()), ignored);
  fs::remove(folder_, ignored);  // where nothing else is in it
}

Status Recorder::write(const Json& record) {
  const Status status = log_->write(record);
  if (status.ok()) return status;
  return Error{status.error().kind, fmt::format("{}; the folder holds what was written before: "
                                                "remove it, or choose another with --out, before "
                                                "trying again",
                                                status.error().message)};
}

Status Recorder::end(const EndMetrics& figures, const RowViews& rows) {
  const int k = hosted_.front();
  std::vector<int> holders;
  for (int node : hosted_)
    if (setup_.holds_model(node)) holders.push_back(node);
  const std::map<std::string, std::string> metadata{{"format", "pt"},
                                                    {"gossamer", kVersion},
                                                    {"run_id", setup_.config.run_id()},
                                                    {"rounds", std::to_string(figures.rounds)}};
  GOSSAMER_TRY_STATUS(write_safetensors(folder_ / fmt::format("final-{}.safetensors", k),
                                        parameter_tensors(setup_, holders, rows), metadata));
  Json record;
  record["record"] = "end";
  record["reason"] = figures.reason;
  record["message"] = figures.message;
  record["rounds"] = figures.rounds;
  record["seconds"] = figures.seconds;
  record["wall_seconds"] = figures.wall_seconds;
  record["node_steps"] = figures.node_steps;
  record["bytes_sent"] = figures.bytes_sent;
  record["row_hashes"] = Json::array();
  for (std::span<const float> row : rows) record["row_hashes"].push_back(hash_hex(row));
  GOSSAMER_TRY_STATUS(write(record));
  return log_->close();
}

}  // namespace gossamer::peer
