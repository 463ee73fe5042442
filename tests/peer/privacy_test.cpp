// Private runs: what is refused, what the log says was spent, that no gradient escapes the count,
// and the same bits wherever the noise can be repeated.
#include <atomic>
#include <limits>

#include "peer/log/summary.hpp"
#include "peer/prediction/prediction.hpp"
#include "peer/privacy/privacy_ledger.hpp"
#include "peer/privacy/privacy_plan.hpp"
#include "tests/peer/test_util.hpp"

using namespace gossamer;
using namespace gossamer::peer;
using namespace gossamer::peer::testing;

namespace {

const Overrides kPrivate{"privacy.clip=1", "privacy.noise_multiplier=1.1"};
const Overrides kRepeated = kPrivate + Overrides{"privacy.noise=reproducible"};
const Overrides kSmall{"run.peers=4", "run.rounds=8", "log.every=2", "data.batch=8"};

std::string refusal(const Overrides& overrides) {
  const auto setup = make_setup(configured(kSmall + overrides));
  return setup.ok() ? "" : setup.error().message;
}

/// Counts the gradients of each shard on their way to the real trainer.
struct CountingTrainer final : gossip::Trainer {
  CountingTrainer(gossip::Trainer& real, int peers)
      : real(real), gradients(static_cast<std::size_t>(peers)) {}
  void run(gossip::TrainOperation operation,
           std::span<gossip::TrainRequest* const> requests) override {
    if (operation == gossip::TrainOperation::local_steps ||
        operation == gossip::TrainOperation::gradient)
      for (const auto* request : requests)
        gradients[static_cast<std::size_t>(request->shard_of)] +=
            static_cast<std::uint64_t>(request->steps);
    CHECK(operation != gossip::TrainOperation::batch_loss);
    real.run(operation, requests);
  }
  double rate(int peer, std::uint64_t step) const override { return real.rate(peer, step); }
  std::size_t shard_size(int peer) const override { return real.shard_size(peer); }
  std::uint64_t batches_per_epoch(int peer) const override { return real.batches_per_epoch(peer); }

  gossip::Trainer& real;
  std::vector<std::uint64_t> gradients;
};

struct CountingWorkload final : Workload {
  CountingWorkload(std::shared_ptr<Workload> made, int peers)
      : real(std::move(made)), counting(*real->trainer(), peers) {}
  const WorkloadSpec& spec() const override { return real->spec(); }
  void initialise(int node, std::span<float> row) const override { real->initialise(node, row); }
  gossip::Trainer* trainer() override { return &counting; }
  std::vector<train::Evaluation> evaluate(const RowViews& rows) override {
    return real->evaluate(rows);
  }
  LossSum loss_sum(int peer) const override { return real->loss_sum(peer); }
  void set_loss_sum(int peer, const LossSum& losses, const float* x) override {
    real->set_loss_sum(peer, losses, x);
  }
  std::string data_hash() const override { return real->data_hash(); }
  void set_one_at_a_time(bool one) override { real->set_one_at_a_time(one); }

  std::shared_ptr<Workload> real;
  CountingTrainer counting;
};

/// `private_steps` of each peer's last record.
std::map<int, std::uint64_t> logged_steps(const Left& left) {
  std::map<int, std::uint64_t> steps;
  for (const Json& record : left.records("round")) steps[record["peer"]] = record["private_steps"];
  return steps;
}

}  // namespace

TEST_CASE("settings under which samples would be told, or nothing hidden, are refused") {
  const std::vector<std::pair<Overrides, std::string>> cases{
      {{"privacy.clip=1"},
       "privacy.clip: clipped gradients without noise hide nothing; set privacy.epsilon (for "
       "example 8), or privacy.noise_multiplier"},
      {{"privacy.epsilon=3"},
       "privacy.epsilon: noise has to cover the longest gradient of a sample, and privacy.clip = 0 "
       "does not bound it; set privacy.clip, for example to 1"},
      {{"privacy.noise_multiplier=3"},
       "privacy.noise_multiplier: noise has to cover the longest gradient of a sample, and "
       "privacy.clip = 0 does not bound it; set privacy.clip, for example to 1"},
      {kPrivate + Overrides{"privacy.epsilon=3"},
       "privacy.epsilon: the noise for it follows from the run, and privacy.noise_multiplier is "
       "set "
       "too; remove one of the two"},
      {{"privacy.clip=1", "privacy.noise_multiplier=0.01"},
       "privacy.noise_multiplier: 0.01 is below 0.05, where epsilon is in the thousands and means "
       "nothing; set it to 0.5 or more"},
      {kPrivate + Overrides{"algorithm.kind=consensus"},
       "privacy.clip: 'consensus' trains on no samples; remove the section [privacy]"},
      {kPrivate + Overrides{"algorithm.kind=centralized"},
       "privacy.clip: 'centralized' has all samples in one node; compare with allreduce, which "
       "sends what each peer computes"},
      {kPrivate + Overrides{"mixing.rule=ubar", "topology.kind=complete"},
       "mixing.rule: 'ubar' chooses neighbours by losses on the peer's samples, which tell more of "
       "them than the private gradients do; choose another rule (clipped, trimmed_mean)"},
      {kPrivate + Overrides{"privacy.delta=0.01"},
       "privacy.delta: at 0.01, one of the 360 samples of the smallest shard may be given away; "
       "set "
       "it well below 1 / 360"},
      {kPrivate + Overrides{"data.kind=quadratic", "model.kind=linear", "data.gradient_noise=0.1"},
       "data.gradient_noise: the data add noise to each gradient, which is not a sample's; set it "
       "to 0 in a run with privacy.clip"},
      {{"privacy.clip=1", "privacy.epsilon=0.000001"},
       "privacy.epsilon: no noise reaches 1e-06 at delta 1e-05; set a larger epsilon or delta"},
  };
  for (const auto& [overrides, message] : cases) CHECK(refusal(overrides) == message);
  CHECK(refusal(kPrivate) == "");
  const auto external = make_setup(configured(kPrivate + Overrides{"model.kind=external"}));
  REQUIRE_FALSE(external.ok());
  CHECK(external.error().message ==
        "privacy.clip: the program of model.kind = external computes its own gradients; make them "
        "private there, for example with Opacus, and remove the section [privacy]");
}

TEST_CASE("every algorithm that trains: the log counts each private gradient, or more") {
  const Folder folder;
  int made = 0;
  for (const Overrides& algorithm : algorithms_of_the_catalog()) {
    if (!trains(algorithm) || algorithm.front() == "algorithm.kind=centralized") continue;
    const Overrides base = fitted(algorithm + kSmall + kRepeated);
    CAPTURE(fmt::format("{}", fmt::join(base, " ")));
    Setup setup = set_up(base);
    const auto counting = std::make_shared<CountingWorkload>(setup.workload, 4);
    setup.workload = counting;
    RunRequest request;
    request.folder = folder.path / std::to_string(made++);
    const auto outcome = run(setup, std::move(request));
    REQUIRE_MESSAGE(outcome.ok(), (outcome.ok() ? "" : outcome.error().message));
    const auto logs = read_logs(folder.path / std::to_string(made - 1));
    REQUIRE(logs.ok());
    std::map<int, std::uint64_t> logged;
    double epsilon = 0;
    for (const Json& record : logs->front().records) {
      if (record["record"] != "round") continue;
      logged[record["peer"]] = record["private_steps"];
      epsilon = std::max(epsilon, record["epsilon"].get<double>());
    }
    REQUIRE(logged.size() == 4);
    for (int peer = 0; peer < 4; ++peer) {
      const std::uint64_t planned =
          planned_steps(setup.config, *setup.algorithm, counting->counting.shard_size(peer));
      CHECK(counting->counting.gradients[static_cast<std::size_t>(peer)] > 0);
      CHECK(counting->counting.gradients[static_cast<std::size_t>(peer)] <= logged[peer]);
      CHECK(logged[peer] <= planned);
    }
    CHECK(outcome->summary["final"]["epsilon"]["max"] == epsilon);
    CHECK(predict(setup, 0.9).privacy->epsilon >= epsilon);
  }
  CHECK(made > 15);
}

TEST_CASE("an epsilon that is asked for is reached, and not passed") {
  const Folder folder;
  const Overrides base = kSmall + Overrides{"privacy.clip=1", "privacy.epsilon=4",
                                            "data.partition=dirichlet", "run.rounds=20"};
  const Left left = run_in(folder.path / "a", base);
  const double epsilon = left.summary["final"]["epsilon"]["max"];
  CHECK(epsilon <= 4);
  CHECK(epsilon > 3.99);
  const Setup setup = set_up(base);
  const auto predicted = predict(setup, 0.9).privacy;
  REQUIRE(predicted.has_value());
  CHECK(predicted->epsilon == epsilon);
  CHECK(setup.workload->spec().privacy->noise_multiplier == predicted->options.noise_multiplier);
  CHECK(summary_text(left.summary).find("privacy                 epsilon ") != std::string::npos);
}

TEST_CASE("reproducible noise: bits depend on the seed alone; secret noise: never the same") {
  const Folder folder;
  const Overrides base = kSmall + kRepeated;
  const std::string hash = run_in(folder.path / "a", base + Overrides{"local.threads=1"}).hash();
  CHECK(run_in(folder.path / "b", base + Overrides{"local.threads=3", "net.chunk_kib=4"}).hash() ==
        hash);
  CHECK(run_in(folder.path / "c", base + Overrides{"run.seed=1"}).hash() != hash);
  CHECK(run_in(folder.path / "d", kSmall + kPrivate).hash() !=
        run_in(folder.path / "e", kSmall + kPrivate).hash());
}

TEST_CASE("after a restart, steps whose gradients others may have seen count twice") {
  const Folder folder;
  const Overrides base = kSmall + kRepeated + Overrides{"checkpoint.every=3", "checkpoint.keep=9"};
  const Left whole = run_in(folder.path, base);
  for (const auto& [peer, steps] : logged_steps(whole)) CHECK(steps == 8);
  turn_back(folder.path, 3);
  RunRequest again;
  again.resume = resume_choice("auto");
  const Left resumed = run_in(folder.path, base, std::move(again));
  CHECK(resumed.hash() == whole.hash());
  // The log had records up to round 8, and a process may run for log.every + 1 rounds beyond its
  // last record. It resumes at round 3, so 8 + 3 - 3 steps are counted in addition to its 8.
  for (const auto& [peer, steps] : logged_steps(resumed)) CHECK(steps == 16);
  const auto largest = [](const Left& left) {
    return left.summary["final"]["epsilon"]["max"].get<double>();
  };
  CHECK(largest(resumed) > largest(whole));

  // Without its log the process may have run to the end: the five rounds that are left count twice.
  turn_back(folder.path, 3);
  fs::remove(folder.path / "log-0.jsonl");
  RunRequest without_log;
  without_log.resume = resume_choice("auto");
  for (const auto& [peer, steps] : logged_steps(run_in(folder.path, base, std::move(without_log))))
    CHECK(steps == 8 + 5);

  // All of it once more, as when no process had a checkpoint.
  fs::remove_all(folder.path / "checkpoints");
  std::string log = content_of(folder.path / "log-0.jsonl");
  written(folder.path / "log-0.jsonl", log.substr(0, log.size() - 30));
  for (const char* name : {"final-0.safetensors", "summary.json"}) fs::remove(folder.path / name);
  RunRequest from_start;
  from_start.resume = resume_choice("auto");
  for (const auto& [peer, steps] : logged_steps(run_in(folder.path, base, std::move(from_start))))
    CHECK(steps == 8 + 13 + 3);
}

TEST_CASE("a ledger never forgets: numbers of a log that no run has do not wrap around") {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  train::PrivacyOptions options;
  options.clip = options.noise_multiplier = 1;
  PrivacyLedger ledger(options, 2);
  ledger.resume(0, 10, kMost, 100);
  CHECK(ledger.spent(0, 0.1, 20).steps == kMost);
  CHECK(ledger.spent(1, 0.1, 20).steps == 20);
  ledger.resume(1, 10, 4, 3);
  CHECK(ledger.spent(1, 0.1, 20).steps == 20);
}
