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

/// What is asked of the program in a run with data.weights = samples.
Result<DataWeighing> weighing_of(const peer::Config& config,
                                 const std::vector<std::uint64_t>& samples) {
  DataWeighing weighing;
  if (config.shards.weights == "peers" || samples.empty()) return weighing;
  GOSSAMER_TRY(const auto algorithm,
               gossip::make_algorithm(config.algorithm.kind, config.algorithm.values));
  weighing.gradients = algorithm->requirements().data_weights != gossip::DataWeights::models;
  for (std::size_t peer = 0; peer < samples.size(); ++peer) {
    if (samples[peer] > 0 && !train::is_shard_size(samples[peer]))
      return invalid_error(fmt::format("samples: {} of peer {} are more than a shard can have",
                                       samples[peer], peer));
    weighing.shards.push_back({samples[peer], {}, {}});
  }
  return weighing;
}

}  // namespace

Result<peer::Setup> make_task_setup(BackgroundRunRequest request, Handoff& handoff) {
  GOSSAMER_TRY(peer::Config config, peer::load_config(request.config, request.overrides));
  const bool networked = !request.ids.ids.empty();
  if (networked && config.run.init == "same")
    request.spec.identity = "start " + request.initial_hash.substr(0, 12);
  request.spec.external_optimizer = true;
  request.spec.divergence_advice = "a smaller learning rate usually helps";
  GOSSAMER_TRY(const int nodes, peer::node_count(config));
  GOSSAMER_TRY(DataWeighing weighing, weighing_of(config, request.samples));
  auto workload = std::make_shared<ExternalWorkload>(std::move(request.spec), nodes, handoff,
                                                     std::move(weighing));
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
