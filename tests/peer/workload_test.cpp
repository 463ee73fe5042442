// A workload that the caller of make_setup() brings: quadratics, trained outside of the library.
#include <limits>

#include "peer/log/collect.hpp"
#include "tests/peer/test_util.hpp"

namespace gossamer::peer::testing {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// f_i(x) = |x − i|²/2 in each of five coordinates, with steps of 0.1.
class Quadratics final : public Workload, private gossip::Trainer {
 public:
  explicit Quadratics(bool reports_losses = true) : reports_losses_(reports_losses) {
    train::ParameterBlock matrix, vector;
    matrix.name = "a";
    matrix.shape = {2, 2};
    matrix.length = 4;
    vector.name = "b";
    vector.shape = {1};
    vector.offset = 4;
    vector.length = 1;
    spec_.parameters = 5;
    spec_.blocks = {matrix, vector};
    spec_.external_optimizer = true;
  }

  WorkloadSpec& spec() { return spec_; }
  const WorkloadSpec& spec() const override { return spec_; }
  void initialise(int, std::span<float> row) const override { std::ranges::fill(row, 0.0F); }
  gossip::Trainer* trainer() override { return this; }
  std::vector<train::Evaluation> evaluate(const RowViews& rows,
                                          std::span<const int> /*nodes*/) override {
    return std::vector<train::Evaluation>(rows.size(), {kUnknown, kUnknown});
  }
  LossSum loss_sum(int) const override { return {}; }
  void set_loss_sum(int, const LossSum&, const float*) override {}
  std::string data_hash() const override { return {}; }
  void set_one_at_a_time(bool) override {}

 private:
  void run(gossip::TrainOperation operation,
           std::span<gossip::TrainRequest* const> requests) override {
    using enum gossip::TrainOperation;
    for (gossip::TrainRequest* request : requests) {
      const auto target = static_cast<float>(request->shard_of);
      for (std::size_t k = 0; k < request->x.size(); ++k) {
        float &x = request->x[k], &g = request->gradient[k];
        if (operation == local_steps || operation == gradient) g = x - target;
        if (operation == local_steps || operation == update) x -= 0.1F * g;
      }
      if (operation == take_loss) {
        request->losses = reports_losses_ ? 1 : 0;
        request->loss = reports_losses_ ? 0.25 : kUnknown;
      }
    }
  }
  double rate(int, std::uint64_t) const override { return 0.1; }
  std::size_t shard_size(int) const override { return 1; }
  std::uint64_t batches_per_epoch(int) const override { return 1; }

  WorkloadSpec spec_;
  bool reports_losses_;
};

const Overrides kExternal{"model.kind=external", "run.peers=4", "run.rounds=400"};

Result<Setup> set_up(const Overrides& overrides, std::shared_ptr<Workload> workload) {
  return make_setup(configured(overrides), {}, std::move(workload));
}

std::string refusal(const Overrides& overrides, std::shared_ptr<Workload> workload) {
  const auto setup = set_up(overrides, std::move(workload));
  return setup.ok() ? "" : setup.error().message;
}

TEST_CASE("a caller's workload: trained with every algorithm that takes it, and collected") {
  const Folder folder;
  for (const std::string kind :
       {"dpsgd", "gradient_tracking", "push_pull", "push_sum", "allreduce", "noloco", "d2", "extra",
        "qg_momentum", "dmsgd", "decentlam", "choco", "power_gossip", "sparseloco", "ad_psgd",
        "server", "async_server", "fedavg"}) {
    CAPTURE(kind);
    Overrides overrides = kExternal + Overrides{"algorithm.kind=" + kind};
    if (kind == "noloco") overrides.emplace_back("topology.kind=random_matching");
    if (kind == "noloco" || kind == "sparseloco" || kind == "fedavg")
      overrides.emplace_back("algorithm.local_steps=2");
    if (kind == "sparseloco") overrides.emplace_back("topology.kind=complete");
    if (kind == "d2") overrides.emplace_back("topology.lazy=true");
    const auto setup = set_up(overrides, std::make_shared<Quadratics>());
    REQUIRE_MESSAGE(setup.ok(), (setup.ok() ? "" : setup.error().message));
    CHECK(setup->parameters == 5);
    RunRequest request;
    request.folder = folder.path / kind;
    std::vector<float> last;
    request.on_end = [&last](const std::optional<Error>& error, const RowViews& rows) {
      CHECK_FALSE(error);
      last.assign(rows.back().begin(), rows.back().end());
    };
    const auto outcome = run(*setup, request);
    REQUIRE(outcome.ok());
    double mean = 0;
    const auto final = read_safetensors(request.folder / "final-0.safetensors").value();
    REQUIRE(final.tensors.size() >= 8);  // a server's follow
    CHECK(final.tensors[0].name == "peer0.a");
    CHECK(final.tensors[7].name == "peer3.b");
    for (std::size_t k = 0; k < 8; ++k)
      for (const float value : final.tensors[k].values) mean += value / 20;
    CHECK(mean == doctest::Approx(1.5).epsilon(0.02));
    CHECK(last.back() == final.tensors.back().values[0]);
    const auto collected = collect(request.folder, {}, false);
    REQUIRE_MESSAGE(collected.ok(), (collected.ok() ? "" : collected.error().message));
    CHECK((*collected)["final_hash"] == outcome->summary["final_hash"]);
  }
}

TEST_CASE("a caller's workload: losses that are not known are null, and no divergence") {
  const Folder folder;
  for (const bool reports : {false, true}) {
    const auto setup = set_up(kExternal, std::make_shared<Quadratics>(reports));
    RunRequest request;
    request.folder = folder.path / (reports ? "known" : "unknown");
    const auto outcome = run(setup.value(), request);
    REQUIRE(outcome.ok());
    CHECK_FALSE(outcome->stopped);
    const Json& loss = outcome->summary["final"]["train_loss"]["mean"];
    CHECK((reports ? loss == 0.25 : loss.is_null()));
    CHECK(outcome->summary["final"]["test_loss"]["mean"].is_null());
  }
}

TEST_CASE("a caller's workload: what cannot run is refused") {
  const auto workload = std::make_shared<Quadratics>();
  CHECK(refusal(kExternal, nullptr).starts_with("model.kind: 'external' is the model of a task"));
  constexpr const char* kNameIt = "name the task's file in model.file";
  CHECK(refusal(kExternal, nullptr).find(kNameIt) != std::string::npos);
  Overrides with_file = kExternal;
  with_file.push_back("model.file=task.py");
  CHECK(refusal(with_file, nullptr).find(kNameIt) == std::string::npos);
  CHECK(refusal({"model.kind=softmax"}, workload)
            .starts_with("model.kind: 'softmax' is a model of gossamer's own"));
  CHECK(refusal(kExternal + Overrides{"algorithm.kind=consensus"}, workload)
            .starts_with("algorithm.kind: 'consensus' trains nothing"));
  CHECK(refusal(kExternal + Overrides{"algorithm.kind=fedavg"}, workload)
            .starts_with("algorithm.local_steps: 'fedavg' would count passes"));
  workload->spec().has_buffers = true;
  CHECK(refusal(kExternal + Overrides{"algorithm.kind=server"}, workload)
            .starts_with("buffers: 'server' sends gradients"));
  CHECK(refusal(kExternal, workload).empty());
  workload->spec().has_buffers = false;
  CHECK(refusal(kExternal + Overrides{"checkpoint.every=5"}, workload).empty());
  workload->spec().saves_state = false;
  CHECK(refusal(kExternal + Overrides{"checkpoint.every=5"}, workload)
            .starts_with("checkpoint.every: a checkpoint would lack"));
  CHECK(refusal(kExternal + Overrides{"algorithm.kind=d2", "topology.lazy=true"}, workload) == "");
  workload->spec().linear_steps = false;
  CHECK(refusal(kExternal + Overrides{"algorithm.kind=d2", "topology.lazy=true"}, workload)
            .ends_with("are not; use SGD, or choose an algorithm that works with any optimizer "
                       "(gradient_tracking, allreduce)"));
  for (const std::string setting : {"data.batch=3", "data.kind=quadratic", "optimizer.rate=1",
                                    "optimizer.kind=adam", "optimizer.momentum=0.5"}) {
    const auto config = load_config("", kExternal + Overrides{setting});
    REQUIRE_FALSE(config.ok());
    CHECK(config.error().message ==
          setting.substr(0, setting.find('=')) +
              ": has no effect with model.kind = external, whose program brings its own data and "
              "optimizer; remove it");
  }
}

}  // namespace
}  // namespace gossamer::peer::testing
