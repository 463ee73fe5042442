#include "peer/log/recorder.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "base/hash.hpp"
#include "base/input_file.hpp"
#include "peer/config/config_json.hpp"
#include "peer/log/resolved_config.hpp"
#include "peer/log/run_files.hpp"
#include "peer/log/summary.hpp"
#include "peer/log/topology_json.hpp"
#include "peer/privacy/privacy_plan.hpp"
#include "peer/setup/node_tensors.hpp"
#include "peer/version.hpp"

namespace gossamer::peer {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxDeviations = 1024;  // in one record

Json deviation_json(const gossip::Deviation& deviation) {
  Json json{{"round", deviation.round}, {"from", deviation.from}};
  json["used_round"] = deviation.missing ? Json() : Json(deviation.used_round);
  if (deviation.channel > 0) json["row"] = deviation.channel;
  if (deviation.values > 0) json["values"] = deviation.values;
  return json;
}

Json refusals_json(const net::RefusedConnections& refused) {
  Json json;
  for (const auto& [reason, count] : refused.by_reason()) json[reason] = count;
  return json;
}

/// What the private gradients of a peer have spent.
double epsilon_of(const Setup& setup, int peer) {
  const std::size_t shard = setup.workload->trainer()->shard_size(peer);
  return setup.workload->privacy_account()->epsilon(peer, sampling_of(setup.config.shards, shard));
}

/// The encoded sketch of a row in device memory (gpu/device.hpp); empty if it is not finite.
std::string sketch_of(const Setup& setup, std::span<const float> row) {
  std::vector<double> values(gpu::sketch_length(row.size()));
  const gpu::SketchRequest<float> request{row.data(), row.size(), setup.config.run.seed,
                                          values.data()};
  setup.device->execute(std::span(&request, 1));
  return encode_sketch(values);
}

Status create_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    return data_error(
        fmt::format("cannot create the run folder {}: {}", folder.string(), error.message()));
  return {};
}

}  // namespace

std::uint64_t logged_multiple(const LogOptions& log) {
  return log.last > 1 || log.every == 0 ? 1 : static_cast<std::uint64_t>(log.every);
}

bool is_logged(const Config& config, gossip::Round round) {
  if (round == 0 || round + static_cast<gossip::Round>(config.log.last) > config.run.rounds)
    return true;
  return config.log.every > 0 && round % static_cast<gossip::Round>(config.log.every) == 0;
}

Result<std::unique_ptr<Recorder>> Recorder::create(const Setup& setup, std::vector<int> hosted,
                                                   const fs::path& folder,
                                                   const std::string& clock) {
  GOSSAMER_TRY_STATUS(create_folder(folder));
  std::unique_ptr<Recorder> recorder(new Recorder(setup, std::move(hosted), folder));
  if (has_entry(recorder->log_path_))
    return data_error(
        fmt::format("{} already contains a run ({}): resume it with --resume auto, choose another "
                    "folder with --out, or remove it",
                    folder.string(), recorder->log_path_.filename().string()));
  GOSSAMER_TRY_STATUS(recorder->open_account());
  GOSSAMER_TRY_STATUS(recorder->start_log(clock));
  return recorder;
}

Result<std::unique_ptr<Recorder>> Recorder::reopen(const Setup& setup, std::vector<int> hosted,
                                                   const fs::path& folder,
                                                   const std::string& clock) {
  std::unique_ptr<Recorder> recorder(new Recorder(setup, std::move(hosted), folder));
  const fs::path& path = recorder->log_path_;
  if (!has_entry(path)) return create(setup, recorder->hosted_, folder, clock);
  GOSSAMER_TRY(std::optional<ResumedLog> log, ResumedLog::read(path, recorder->hosted_.front()));
  if (!log) {  // the process was killed while it wrote the header
    std::error_code ignored;
    fs::remove(path, ignored);
    return create(setup, recorder->hosted_, folder, clock);
  }
  const Json& ours = recorder->header_ = recorder->header_of(clock);
  for (const char* field : {"run_id", "peers", "servers", "hosted", "parameters", "time"})
    if (ours.at(field) != log->header().at(field))
      return data_error(fmt::format(
          "{} cannot be resumed by this run: its {} is {}, and here it is {}; choose "
          "another folder with --out, and set checkpoint.folder to the folder of the "
          "checkpoints",
          path.string(), field, text_of(log->header().at(field)), text_of(ours.at(field))));
  GOSSAMER_TRY_STATUS(recorder->open_account());
  recorder->resumed_log_ = std::move(*log);
  recorder->appends_ = true;
  return recorder;
}

Recorder::Recorder(const Setup& setup, std::vector<int> hosted, fs::path folder)
    : setup_(setup),
      hosted_(std::move(hosted)),
      folder_(std::move(folder)),
      log_path_(folder_ / fmt::format("log-{}.jsonl", hosted_.front())),
      train_losses_(workers(), std::numeric_limits<double>::quiet_NaN()) {}

Status Recorder::start_log(const std::string& clock) {
  GOSSAMER_TRY_STATUS(write_resolved(setup_.config, folder_, hosted_.front()));
  GOSSAMER_TRY(RecordFile log, RecordFile::create(log_path_));
  log_.emplace(std::move(log));
  const Status written = log_->write(header_ = header_of(clock));
  if (!written.ok()) discard();
  return written;
}

Json Recorder::header_of(const std::string& clock) const {
  Json header;
  header["record"] = "header";
  header["schema"] = 1;
  header["version"] = kVersion;
  header["run_id"] = setup_.config.run_id();
  header["peers"] = setup_.config.run.peers;
  header["servers"] = setup_.servers();
  header["hosted"] = hosted_;
  header["parameters"] = setup_.parameters;
  if (setup_.part) header["part"] = *setup_.part;
  header["device"] = setup_.device->description();
  header["time"] = clock;
  header["started"] = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  header["topology"] = topology_json(setup_);
  header["topology"]["edge_list"] = edge_list(*setup_.schedule, setup_.report());
  header["topology"]["lattice"] = setup_.schedule->lattice();
  header["config"] = config_json(setup_.config);
  return header;
}

Result<std::size_t> Recorder::set_records_aside(gossip::Round round) const {
  if (!resumed_log_) return std::size_t{0};
  return resumed_log_->copy_dropped(round, aside_path());
}

Status Recorder::resume_at(gossip::Round round, bool ran_before) {
  if (PrivacyAccount* account = setup_.workload->privacy_account();
      account != nullptr && ran_before && !account->has_earlier_account()) {
    // It goes on without its run folder: before, it may have run to the end.
    for (std::size_t i = 0; i < workers(); ++i)
      account->add(hosted_[i], setup_.config.run.rounds * setup_.steps_per_round(hosted_[i]));
  }
  if (!resumed_log_) return {};
  if (round == 0 && resumed_log_->finished())
    return data_error(
        fmt::format("{} is the log of a finished run, and there is no checkpoint to resume "
                    "from: choose another folder with --out, or remove it",
                    log_path_.string()));
  GOSSAMER_TRY(train_losses_, resumed_log_->truncate(round));
  train_losses_.resize(workers());  // servers, which follow the workers, have no train loss
  GOSSAMER_TRY_STATUS(write_resolved(setup_.config, folder_, hosted_.front()));
  GOSSAMER_TRY(RecordFile log, RecordFile::append(log_path_));
  log_.emplace(std::move(log));
  resumed_log_.reset();
  first_round_ = round;
  return {};
}

std::size_t Recorder::workers() const {
  const auto end = std::partition_point(hosted_.begin(), hosted_.end(),
                                        [this](int node) { return !setup_.is_server(node); });
  return static_cast<std::size_t>(end - hosted_.begin());
}

std::string end_reason(const Error& error) {
  switch (error.kind) {
    case ErrorKind::interrupted: return "interrupted";
    case ErrorKind::diverged: return "diverged";
    case ErrorKind::lost_peer: return "lost_peer";
    default: return "failed";
  }
}

bool Recorder::records_sketch() const {
  const std::string& setting = setup_.config.log.sketch;
  return setting == "on" || (setting == "auto" && !hosts_all());
}

Status Recorder::round(const RoundMetrics& metrics) {
  const auto index = static_cast<std::size_t>(
      std::find(hosted_.begin(), hosted_.end(), metrics.peer) - hosted_.begin());
  const bool is_server = setup_.is_server(metrics.peer);
  if (metrics.trained) train_losses_[index] = metrics.train_loss;
  Json record;
  record["record"] = is_server ? "server" : "round";
  record["round"] = metrics.round;
  record[is_server ? "server" : "peer"] = metrics.peer;
  record["seconds"] = metrics.seconds;
  if (!is_server) record["train_loss"] = finite_or_null(metrics.train_loss);
  record["test_loss"] = finite_or_null(metrics.test.loss);
  record["test_accuracy"] = finite_or_null(metrics.test.accuracy);
  record["bytes_sent"] = metrics.traffic.bytes_sent;
  record["bytes_received"] = metrics.traffic.bytes_received;
  record["train_seconds"] = metrics.times.train_seconds;
  record["wait_seconds"] = metrics.times.wait_seconds;
  if (!is_server) record["mix_seconds"] = metrics.mix_seconds;
  const bool current = setup_.is_current(metrics.peer, metrics.round);
  if (!current) record["current"] = false;
  if (!is_server && current && records_sketch())
    if (std::string encoded = sketch_of(setup_, metrics.row); !encoded.empty())
      record["sketch"] = std::move(encoded);
  if (!is_server) add_privacy(metrics, record);
  if (const gossip::Staleness& staleness = metrics.staleness; staleness.pushes > 0) {
    const double mean = static_cast<double>(staleness.sum) / static_cast<double>(staleness.pushes);
    record["staleness"] = {
        {"pushes", staleness.pushes}, {"mean", mean}, {"max", staleness.largest}};
  }
  GOSSAMER_TRY_STATUS(write(record));
  if (!hosts_all()) on_progress(record);
  if (is_server || !hosts_all() || !current) return {};

  const auto [found, is_new] = snapshots_.try_emplace(metrics.round);
  Snapshot& snapshot = found->second;
  if (is_new) {
    snapshot.rows.resize(workers());
    snapshot.due = current_workers(setup_, metrics.round).size();
  }
  snapshot.rows[index].resize(metrics.row.size());
  setup_.device->download(snapshot.rows[index].data(), metrics.row.data(),
                          metrics.row.size_bytes());
  if (++snapshot.arrived < snapshot.due) return {};
  const Snapshot complete = std::move(snapshot);
  snapshots_.erase(metrics.round);
  return network_record(metrics.round, complete);
}

Status Recorder::open_account() {
  PrivacyAccount* account = setup_.workload->privacy_account();
  if (account == nullptr) return {};
  std::string settings = fmt::format("{} {}", setup_.config.shared_hash(),
                                     setup_.workload->spec().privacy->options.noise_multiplier);
  for (std::size_t i = 0; i < workers(); ++i)
    settings +=
        fmt::format(" {}:{}", hosted_[i], setup_.workload->trainer()->shard_size(hosted_[i]));
  return account->keep_in(account_path(), setup_.config.run_id(), hash_hex(settings));
}

std::vector<double> Recorder::epsilons() const {
  std::vector<double> all;
  if (setup_.workload->privacy_account() != nullptr)
    for (std::size_t i = 0; i < workers(); ++i) all.push_back(epsilon_of(setup_, hosted_[i]));
  return all;
}

void Recorder::add_privacy(const RoundMetrics& metrics, Json& record) const {
  const PrivacyAccount* account = setup_.workload->privacy_account();
  if (account == nullptr) return;
  record["private_steps"] = account->spent(metrics.peer);
  record["epsilon"] = epsilon_of(setup_, metrics.peer);
}

Status Recorder::membership(const MembershipMetrics& metrics) {
  if (!log_) return {};  // a process that joins a network has no open log before it starts
  Json record;
  record["record"] = "membership";
  record["round"] = metrics.round;
  record["peer"] = metrics.peer;
  record["seconds"] = metrics.seconds;
  record["event"] = metrics.event;
  record["neighbour"] = metrics.neighbour ? Json(*metrics.neighbour) : Json();
  record["reachable_peers"] = metrics.reachable_peers ? Json(*metrics.reachable_peers) : Json();
  record["cause"] = metrics.cause.empty() ? Json() : Json(metrics.cause);
  if (!metrics.participants.empty()) {
    record["participants"] = metrics.participants;
    record["topology"] = metrics.topology;
  }
  if (metrics.route) {
    const bool relayed = metrics.route->way == net::Route::Way::relayed;
    record["route"] = net::name_of(metrics.route->way);
    record["relay"] = relayed ? Json(metrics.route->relay) : Json();
  }
  return write(record);
}

Status Recorder::deviations(const DeviationMetrics& metrics) {
  Json record;
  record["record"] = "deviations";
  record["round"] = metrics.round;
  record["peer"] = metrics.peer;
  for (std::size_t begin = 0; begin < metrics.deviations.size(); begin += kMaxDeviations) {
    Json& list = record["deviations"] = Json::array();
    for (std::size_t k = begin; k < std::min(begin + kMaxDeviations, metrics.deviations.size());
         ++k)
      list.push_back(deviation_json(metrics.deviations[k]));
    GOSSAMER_TRY_STATUS(write(record));
  }
  return {};
}

Status Recorder::network_record(gossip::Round round, const Snapshot& snapshot) {
  const std::vector<int> peers = honest_peers(setup_, current_workers(setup_, round));
  if (peers.empty()) return {};  // only hostile peers have a model of this round
  RowViews rows;
  for (const int peer : peers) rows.emplace_back(snapshot.rows[static_cast<std::size_t>(peer)]);
  const NetworkMetrics metrics = network_metrics(setup_, rows, peers);
  Json record;
  record["record"] = "network";
  record["round"] = round;
  record["consensus_distance"] = finite_or_null(metrics.distance.all);
  record["averaged_loss"] = finite_or_null(metrics.averaged.loss);
  record["averaged_accuracy"] = finite_or_null(metrics.averaged.accuracy);
  record["distance_to_optimum"] = finite_or_null(metrics.distance_to_optimum);
  record["averaged_distance_to_optimum"] = finite_or_null(metrics.averaged_distance_to_optimum);
  // Null for an honest peer that takes no part, or has no current model.
  std::vector<Json> distances(workers());
  for (std::size_t k = 0; k < peers.size(); ++k)
    distances[static_cast<std::size_t>(peers[k])] = finite_or_null(metrics.distance.by_peer[k]);
  for (const int peer : honest_peers(setup_, hosted_))
    record["distances_from_mean"].push_back(distances[static_cast<std::size_t>(peer)]);
  if (!metrics.backdoor_success.empty())
    record["backdoor_success"] = mean_and_range(metrics.backdoor_success)["mean"];
  GOSSAMER_TRY_STATUS(write(record));
  on_progress(record);
  return {};
}

void Recorder::discard() {
  if (appends_) return;
  std::error_code ignored;
  fs::remove(log_path_, ignored);
  remove_resolved(folder_, hosted_.front());
  const PrivacyAccount* account = setup_.workload->privacy_account();
  if (account != nullptr && account->empty()) fs::remove(account_path(), ignored);
  fs::remove(folder_, ignored);  // only if it is empty
}

Status Recorder::write(const Json& record) {
  const auto round = record.find("round");
  if (round != record.end() && round->get<gossip::Round>() < first_round_) return {};
  const Status status = log_->write(record);
  if (status.ok()) on_record(record);
  if (status.ok()) return status;
  const char* advice =
      setup_.config.checkpoint.every > 0
          ? "once that is mended (a full disk needs free space), start again with --resume auto"
          : "once that is mended (a full disk needs free space), remove the folder, which contains "
            "the records written so far, or choose another with --out, and start again";
  return Error{status.error().kind, fmt::format("{}; {}", status.error().message, advice)};
}

Status Recorder::end(const EndMetrics& metrics, const RowViews& rows) {
  const int lowest = hosted_.front();
  std::vector<int> models;
  for (int node : hosted_)
    if (setup_.holds_model(node)) models.push_back(node);
  const std::map<std::string, std::string> metadata{{"format", "pt"},
                                                    {"gossamer", kVersion},
                                                    {"run_id", setup_.config.run_id()},
                                                    {"rounds", std::to_string(metrics.rounds)}};
  GOSSAMER_TRY_STATUS(write_safetensors(folder_ / fmt::format("final-{}.safetensors", lowest),
                                        parameter_tensors(setup_, models, rows), metadata));
  Json record;
  record["record"] = "end";
  record["reason"] = metrics.reason;
  record["message"] = metrics.message;
  record["rounds"] = metrics.rounds;
  record["seconds"] = metrics.seconds;
  record["wall_seconds"] = metrics.wall_seconds;
  record["node_steps"] = metrics.node_steps;
  record["bytes_sent"] = metrics.bytes_sent;
  record["refused_connections"] = metrics.refused ? refusals_json(*metrics.refused) : Json();
  record["lending_links"] = metrics.lending_links ? Json(*metrics.lending_links) : Json();
  record["row_hashes"] = Json::array();
  for (std::span<const float> row : rows) record["row_hashes"].push_back(hash_hex(row));
  if (std::vector<double> spent = epsilons(); !spent.empty()) record["epsilons"] = std::move(spent);
  GOSSAMER_TRY_STATUS(write(record));
  GOSSAMER_TRY_STATUS(log_->close());
  PrivacyAccount* account = setup_.workload->privacy_account();
  return account != nullptr ? account->close() : Status();
}

}  // namespace gossamer::peer
