#include "background_run.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <thread>
#include <utility>

#include "external_workload.hpp"
#include "gossip/algorithm.hpp"
#include "peer/runtime/network_run.hpp"
#include "peer/setup/hosted_ids.hpp"

namespace gossamer::python {
namespace {

Status check_shard(std::size_t peer, const train::ShardSummary& shard, std::size_t features) {
  if (!train::is_shard_size(shard.samples))
    return invalid_error(
        fmt::format("samples: {} of peer {} are more than a shard can have", shard.samples, peer));
  if (shard.means.size() != features || shard.variances.size() != features)
    return invalid_error(fmt::format("moments: the samples of peer {} have {} features, and not {}",
                                     peer, shard.means.size(), features));
  for (std::size_t f = 0; f < features; ++f)
    if (!train::is_moment(shard.means[f], shard.variances[f]))
      return invalid_error(
          fmt::format("moments: feature {} of peer {} has the mean {} and the variance {}, which "
                      "are no moments of finite float32 values",
                      f, peer, shard.means[f], shard.variances[f]));
  return {};
}

/// What the program says of its data, as far as the run uses it.
Result<OwnData> own_data_of(const peer::Config& config, peer::Shards shards, std::size_t features) {
  OwnData data;
  data.weighs = config.shards.weights != "peers";
  data.features = features;
  if (shards.empty() || (!data.weighs && data.features == 0)) return data;
  GOSSAMER_TRY(const auto algorithm,
               gossip::make_algorithm(config.algorithm.kind, config.algorithm.values));
  data.weighs_gradients = algorithm->requirements().data_weights != gossip::DataWeights::models;
  constexpr std::size_t kMostFeatures = 9'999'999;  // identity_of() has room for seven digits
  if (features > kMostFeatures)
    return invalid_error(fmt::format("moments: {} features are too many; at most {} can be scaled",
                                     features, kMostFeatures));
  for (std::size_t peer = 0; peer < shards.size(); ++peer)
    if (shards[peer].samples > 0)
      GOSSAMER_TRY_STATUS(check_shard(peer, shards[peer], data.features));
  data.shards = std::move(shards);
  return data;
}

/// Compared by the processes of a network, and explained by initial.py where they differ: the start
/// of the parameters, and the number of scaled features. A hello has 63 bytes for it and the model.
std::string identity_of(const BackgroundRunRequest& request, const peer::Config& config,
                        std::size_t features) {
  const bool same = config.run.init == "same";
  if (features == 0) return same ? "start " + request.initial_hash.substr(0, 12) : "";
  return fmt::format("start {}/{}", same ? request.initial_hash.substr(0, 6) : "any", features);
}

}  // namespace

Result<peer::Setup> make_task_setup(BackgroundRunRequest request, Handoff& handoff) {
  GOSSAMER_TRY(peer::Config config, peer::load_config(request.config, request.overrides));
  const bool networked = !request.ids.ids.empty();
  request.spec.external_optimizer = true;
  request.spec.divergence_advice = "a smaller learning rate usually helps";
  GOSSAMER_TRY(const int nodes, peer::node_count(config));
  GOSSAMER_TRY(OwnData data, own_data_of(config, std::move(request.shards), request.features));
  if (networked) request.spec.identity = identity_of(request, config, data.features);
  auto workload =
      std::make_shared<ExternalWorkload>(std::move(request.spec), nodes, handoff, std::move(data));
  if (!networked) workload->agree(workload->own_shards());
  if (!networked) return peer::make_setup(std::move(config), {}, std::move(workload));
  const peer::Environment environment = [](const char* name) { return std::getenv(name); };
  return peer::make_network_setup(std::move(config), request.ids.ids, environment,
                                  std::move(workload));
}

BackgroundRun::BackgroundRun(const BackgroundRunRequest& request)
    : ids_(request.ids), resume_(peer::resume_choice(request.resume)) {}

Result<std::shared_ptr<BackgroundRun>> BackgroundRun::start(BackgroundRunRequest request) {
  const std::shared_ptr<BackgroundRun> run(new BackgroundRun(request));
  const bool quiet = !request.shows_progress;
  GOSSAMER_TRY(run->setup_, make_task_setup(std::move(request), run->handoff_));
  run->progress_.emplace(run->config().run.rounds, quiet);
  std::thread([run] { run->run(); }).detach();  // close() waits for it
  return run;
}

void BackgroundRun::run() {
  std::optional<Error> error;
  try {
    error = ids_.ids.empty() ? run_simulation() : run_networked();
  } catch (const Closed& closed) {
    error = Error{ErrorKind::interrupted, closed.what()};
  } catch (const std::exception& failure) {
    error = Error{ErrorKind::internal, failure.what()};
  }
  progress_->end();
  const std::lock_guard lock(mutex_);
  if (!left_) error_ = std::move(error);
  left_ = finished_ = true;
  final_.clear();
  handoff_.end();
  changed_.notify_all();
}

std::optional<Error> BackgroundRun::run_simulation() {
  peer::RunRequest request;
  request.folder = folder();
  request.resume = resume_;
  request.interrupted = [this] { return stop_.stop_requested(); };
  request.message = [this](const std::string& line) { add_message(line); };
  request.on_progress = [this](const peer::Json& record) { show(record); };
  request.on_end = [this](const auto& error, const auto& rows) { on_end(error, rows); };
  const auto outcome = peer::run(*setup_, std::move(request));
  return outcome.ok() ? outcome->stopped : outcome.error();
}

std::optional<Error> BackgroundRun::run_networked() {
  peer::NetworkRunRequest request;
  request.hosted = ids_.ids;
  request.listening = ids_.listening;
  request.folder = folder();
  request.resume = resume_;
  request.stop = stop_.get_token();
  request.leave = leave_.get_token();
  request.message = [this](const std::string& line) { add_message(line); };
  request.on_progress = [this](const peer::Json& record) { show(record); };
  request.on_end = [this](const auto& error, const auto& rows) { on_end(error, rows); };
  const Status status = peer::run_networked(*setup_, request);
  return status.ok() ? std::nullopt : std::optional(status.error());
}

/// The rows are the run's: it waits here until the program needs them no more.
void BackgroundRun::on_end(const std::optional<Error>& error, const peer::RowViews& rows) {
  progress_->end();
  std::unique_lock lock(mutex_);
  error_ = error;
  final_ = rows;
  left_ = true;
  handoff_.end();
  changed_.notify_all();
  changed_.wait(lock, [this] { return closed_ && views_ == 0; });
  final_.clear();
}

std::optional<Error> BackgroundRun::error() {
  const std::lock_guard lock(mutex_);
  return error_;
}

peer::RowViews BackgroundRun::final_rows() {
  const std::lock_guard lock(mutex_);
  return final_;
}

peer::Json BackgroundRun::last_record() {
  const std::lock_guard lock(mutex_);
  return record_;
}

std::vector<std::string> BackgroundRun::take_messages() {
  const std::lock_guard lock(mutex_);
  return std::exchange(messages_, {});
}

void BackgroundRun::add_message(const std::string& line) {
  progress_->end();
  const std::lock_guard lock(mutex_);
  messages_.push_back(line);
}

void BackgroundRun::show(const peer::Json& record) {
  progress_->show(record);
  const std::lock_guard lock(mutex_);
  record_ = record;
}

// The stop comes first, so that the run ends because of it, and not because requests fail.
void BackgroundRun::close() {
  stop_.request_stop();
  handoff_.close();
  std::unique_lock lock(mutex_);
  closed_ = true;
  changed_.notify_all();
  changed_.wait(lock, [this] { return finished_ || (left_ && views_ > 0); });
}

void BackgroundRun::add_view() {
  const std::lock_guard lock(mutex_);
  ++views_;
}

void BackgroundRun::remove_view() {
  const std::lock_guard lock(mutex_);
  --views_;
  changed_.notify_all();
}

}  // namespace gossamer::python
