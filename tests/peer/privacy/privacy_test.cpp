// Private runs: what is refused, what the log says was spent, that no gradient escapes the count,
// and the same bits wherever the noise can be repeated.
#include <atomic>
#include <limits>

#include "peer/log/recorder.hpp"
#include "peer/log/summary.hpp"
#include "peer/prediction/prediction.hpp"
#include "peer/privacy/privacy_account.hpp"
#include "peer/privacy/privacy_plan.hpp"
#include "tests/peer/test_util.hpp"
#include "theory/privacy_accountant.hpp"

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
  std::vector<train::Evaluation> evaluate(const RowViews& rows,
                                          std::span<const int> nodes) override {
    return real->evaluate(rows, nodes);
  }
  LossSum loss_sum(int peer) const override { return real->loss_sum(peer); }
  void set_loss_sum(int peer, const LossSum& losses, const float* x) override {
    real->set_loss_sum(peer, losses, x);
  }
  std::string data_hash() const override { return real->data_hash(); }
  PrivacyAccount* privacy_account() override { return real->privacy_account(); }
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
       "privacy.delta: at 0.01, one of the 361 samples of the largest shard may be given away; "
       "set "
       "it well below 1 / 361"},
      {kPrivate + Overrides{"data.kind=quadratic", "model.kind=linear", "data.gradient_noise=0.1"},
       "data.gradient_noise: the data add noise to each gradient, which is not a sample's; set it "
       "to 0 in a run with privacy.clip"},
      {kPrivate + Overrides{"data.kind=csv", "data.path=/none"},
       "data.standardise: means and variances of the samples are exact, and the scaled features of "
       "all peers depend on them; scale the features in the files, and set data.standardise = "
       "false"},
      {{"privacy.clip=1", "privacy.epsilon=2", "data.partition=own", "data.kind=idx",
        "data.path=/none"},
       "privacy.epsilon: the noise for it depends on the sizes of the shards, which own data tell "
       "only at the start; set privacy.noise_multiplier, and read epsilon in the log"},
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
  CHECK(setup.workload->spec().privacy->options.noise_multiplier ==
        predicted->options.noise_multiplier);
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

TEST_CASE("an epsilon holds for every shard, also where a larger one has more batches") {
  // With 19 samples there is one batch of 10 in an epoch, and with 20 there are two.
  const auto data = train::make_dataset("digits", {2, 0}, {});
  REQUIRE(data.ok());
  const Config config =
      configured({"algorithm.kind=fedavg", "algorithm.local_epochs=1", "data.batch=10",
                  "run.rounds=20", "privacy.clip=1", "privacy.epsilon=4"});
  const auto algorithm = gossip::make_algorithm("fedavg", config.algorithm.values);
  REQUIRE(algorithm.ok());
  train::Shards shards(2);
  for (std::uint32_t i = 0; i < 39; ++i) shards[i < 19 ? 0 : 1].push_back(i);
  const auto schedule = topology::make_schedule(schedule_request(config, **algorithm));
  REQUIRE(schedule.ok());
  const gossip::MixingRule rule;
  const PrivateRun planned{config, **algorithm, rule, **schedule};
  const auto plan = plan_privacy(planned, *data, shards);
  REQUIRE(plan.ok());
  double most = 0;
  for (const auto& shard : shards)
    most = std::max(most, theory::PrivacyAccountant(sampling_of(config.shards, shard.size()),
                                                    plan->options.noise_multiplier)
                              .epsilon(planned_steps(config, **algorithm, shard.size()), 1e-5));
  CHECK(most <= 4);
  CHECK(most > 3.99);
  // No shard is in this process.
  CHECK(plan_privacy(planned, *data, train::Shards(2)).ok());
}

namespace {

/// The account of the folder's process, as a process finds it that starts there.
std::vector<std::uint64_t> account_in(const fs::path& folder) {
  return Json::parse(content_of(folder / "privacy-0.json"))["gradients"];
}

}  // namespace

TEST_CASE("however often a process starts again, every gradient of every life is in the account") {
  // Records are rare, so that the lives between them leave none; and clients of fedavg sit out.
  const std::vector<Overrides> algorithms{{"algorithm.kind=dpsgd"},
                                          {"algorithm.kind=fedavg", "algorithm.fraction=0.5"}};
  for (const Overrides& algorithm : algorithms) {
    const Folder folder;
    const Overrides base =
        kSmall + kRepeated + algorithm +
        Overrides{"run.rounds=20", "log.every=0", "checkpoint.every=3", "checkpoint.keep=9"};
    std::vector<std::uint64_t> computed(4);
    double before = 0;
    for (int life = 0; life < 4; ++life) {
      Setup setup = set_up(base);
      const auto counting = std::make_shared<CountingWorkload>(setup.workload, 4);
      setup.workload = counting;
      RunRequest request;
      request.folder = folder.path;
      if (life > 0) request.resume = resume_choice("auto");
      const auto outcome = run(setup, std::move(request));
      REQUIRE_MESSAGE(outcome.ok(), (outcome.ok() ? "" : outcome.error().message));
      const auto account = account_in(folder.path);
      for (std::size_t peer = 0; peer < 4; ++peer) {
        computed[peer] += counting->counting.gradients[peer];
        CHECK(account[peer] == computed[peer]);  // the process ended in order: no block is left
      }
      const double spent = outcome->summary["final"]["epsilon"]["max"];
      CHECK(spent > before);
      before = spent;
      turn_back(folder.path, 3);
    }
    CHECK(computed[0] > 20);
  }
}

TEST_CASE("a run that is interrupted states what was spent since its last record") {
  const Folder folder;
  int asked = 0;
  RunRequest request;
  request.interrupted = [&asked] { return ++asked > 20; };
  const Left left =
      run_in(folder.path, kSmall + kRepeated + Overrides{"run.rounds=1000", "log.every=0"},
             std::move(request));
  REQUIRE(left.stopped.has_value());
  const Json end = *left.log.end();
  REQUIRE(end["epsilons"].size() == 4);
  CHECK(end["epsilons"][0].get<double>() > 0);
  CHECK(left.summary["final"]["epsilon"]["max"].get<double>() >= end["epsilons"][0].get<double>());
}

TEST_CASE("an account is written before it is spent, and never says less than it was") {
  const Folder folder;
  const fs::path file = folder.path / "privacy-0.json";
  const PrivacyPlan plan{{.clip = 1, .noise_multiplier = 1}, {1, 1, 1}};
  const auto written_account = [&] { return account_in(folder.path); };
  {
    PrivacyAccount account(plan);
    REQUIRE(account.keep_in(file, "run", "settings").ok());
    CHECK_FALSE(account.has_earlier_account());
    CHECK(account.empty());
    // A process that ended before its first gradient leaves an account of nothing.
    PrivacyAccount other(plan);
    REQUIRE(other.keep_in(file, "run", "settings").ok());
    CHECK_FALSE(other.has_earlier_account());
    CHECK(account.spend(1, 1));
    CHECK_FALSE(account.empty());
    CHECK(written_account()[1] >= 1);
    for (int step = 1; step < 200; ++step) {
      CHECK(account.spend(1, 1));
      CHECK(written_account()[1] >= account.spent(1));
      CHECK(written_account()[1] <= account.spent(1) + PrivacyAccount::kBlock);
    }
  }  // killed
  PrivacyAccount again(plan);
  REQUIRE(again.keep_in(file, "run", "settings").ok());
  CHECK(again.has_earlier_account());
  CHECK(again.spent(1) >= 200);
  CHECK(again.spent(0) == 0);
  again.add(0, std::numeric_limits<std::uint64_t>::max());
  again.add(0, 5);
  CHECK(again.spent(0) == std::numeric_limits<std::uint64_t>::max());
  CHECK(again.spend(2, 7));
  REQUIRE(again.close().ok());
  CHECK(written_account()[2] == 7);

  for (const char* settings : {"other", ""})
    CHECK(PrivacyAccount(plan).keep_in(file, "run", settings).error().message ==
          file.string() +
              " is of a run with another id or other settings: choose another folder with --out");
  for (const char* content :
       {"", "{}", "[1]", R"({"run_id":"run","settings":"settings","gradients":[1,2]})",
        R"({"run_id":"run","settings":"settings","gradients":[1,-2,3]})",
        R"({"run_id":"run","settings":"settings","gradients":[1,"2",3]})"}) {
    written(file, content);
    const Status status = PrivacyAccount(plan).keep_in(file, "run", "settings");
    CHECK_MESSAGE(!status.ok(), content);
    CHECK(status.error().message.find(file.string()) == 0);
  }
}

TEST_CASE("where the account cannot be written, no gradient is computed and the run ends") {
  const Folder folder;
  Setup setup = set_up(kSmall + kRepeated + Overrides{"run.rounds=300"});
  const auto counting = std::make_shared<CountingWorkload>(setup.workload, 4);
  setup.workload = counting;
  int asked = 0;
  RunRequest request;
  request.folder = folder.path / "run";
  const fs::path account = request.folder / "privacy-0.json";
  request.interrupted = [&] {
    if (++asked == 40) {  // from now on the file cannot be replaced
      fs::remove(account);
      fs::create_directories(account / "in the way");
    }
    return false;
  };
  const auto outcome = run(setup, std::move(request));
  REQUIRE_FALSE(outcome.ok());
  CHECK(outcome.error().kind == ErrorKind::data);
  CHECK(outcome.error().message.find(account.string()) != std::string::npos);
}

TEST_CASE("a process that goes on without its run folder may have run to the end before") {
  const Folder folder;
  const Overrides base = kSmall + kRepeated + Overrides{"checkpoint.every=3", "checkpoint.keep=9"};
  run_in(folder.path / "first", base);
  RunRequest request;
  request.resume = resume_choice((folder.path / "first" / "checkpoints").string());
  const Left moved = run_in(folder.path / "second", base, std::move(request));
  for (const auto& [peer, steps] : logged_steps(moved)) CHECK(steps >= 8 + 2);

  // The account that is there belongs to shards of these sizes.
  fs::remove(folder.path / "first" / "log-0.jsonl");
  fs::remove_all(folder.path / "first" / "checkpoints");
  const Setup other = set_up(base + Overrides{"data.partition=dirichlet"});
  RunRequest fresh;
  fresh.folder = folder.path / "first";
  const auto refused = run(other, std::move(fresh));
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message.find("privacy-0.json is of a run with another id") !=
        std::string::npos);
}

TEST_CASE("a run that did not start takes its account away, unless something was spent") {
  const Folder folder;
  for (const bool spends : {false, true}) {
    const fs::path run_folder = folder.path / (spends ? "spent" : "not");
    const Setup setup = set_up(kSmall + kRepeated);
    const auto recorder = Recorder::create(setup, {0, 1, 2, 3}, run_folder, "virtual");
    REQUIRE(recorder.ok());
    CHECK(fs::exists(run_folder / "privacy-0.json"));
    if (spends) CHECK(setup.workload->privacy_account()->spend(2, 1));
    (*recorder)->discard();
    CHECK(fs::exists(run_folder / "privacy-0.json") == spends);
    CHECK_FALSE(fs::exists(run_folder / "log-0.jsonl"));
  }
}
