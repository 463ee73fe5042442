// A schedule of step sizes that is ahead of the local steps, as at peers that leave rounds out: on
// every path on which a learner takes steps.
#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/train/learner/blobs_test_util.hpp"
#include "train/muon/muon_learner.hpp"

using namespace gossamer;
using namespace gossamer::train;

namespace {

constexpr int kPeers = 2;
constexpr double kRate = 0.0625;
constexpr std::uint64_t kFirstStep = 3, kLead = 10;

/// Half the step size from local step 13 on, or from the beginning.
OptimizerOptions optimizer_of(const std::string& kind, bool halved) {
  ParameterValues own{{"rate", halved ? kRate / 2 : kRate}}, schedule;
  if (kind == "muon") own["adamw_rate"] = halved ? kRate / 4 : kRate / 2;
  if (!halved)
    schedule = {{"schedule", std::string("step")},
                {"milestones", std::vector<std::int64_t>{kFirstStep + kLead}},
                {"factor", 0.5}};
  auto made = make_optimizer(kind, own, schedule);
  if (!made.ok()) FAIL(made.error().message);
  return std::move(made).value();
}

std::unique_ptr<Learner<float>> learner_of(const std::string& path, bool halved,
                                           gpu::CpuDevice& device) {
  LearnerRequest made = request(kPeers);
  made.model = chain({Dense{.units = 6, .activation = Activation::tanh}, Dense{.units = 3}},
                     Loss::softmax_cross_entropy);
  made.optimizer = optimizer_of(path == "muon" ? "muon" : "sgd", halved);
  if (path == "private")
    made.optimizer.privacy = {.clip = 1, .noise_multiplier = 0.5, .noise = "reproducible"};
  if (path == "cut") made.split = {.layers = 2, .microbatches = 2};
  const OptimizerOptions optimizer = made.optimizer;
  auto learns = learner<float>(std::move(made), device);
  if (path != "muon") return learns;
  return make_muon_learner<float>(std::move(learns), optimizer, device);
}

using Steps = std::function<void(Learner<float>&, State<float>&)>;

/// The peers' rows after some steps, with a schedule that is `lead` steps ahead.
std::vector<float> rows_after(const Steps& steps, const std::string& path, bool halved,
                              std::uint64_t lead) {
  gpu::CpuDevice device(1);
  const auto learns = learner_of(path, halved, device);
  State<float> state(*learns, kPeers);
  for (StepRequest<float>& each : state.requests) each.rate_lead = lead;
  steps(*learns, state);
  return state.all();
}

void three_steps(Learner<float>& learner, State<float>& state) {
  state.at(kFirstStep, 3);
  learner.local_steps(state.requests);
}

void gradient_and_update(Learner<float>& learner, State<float>& state) {
  state.at(kFirstStep);
  learner.gradient(state.requests);
  std::vector<UpdateRequest<float>> updates;
  for (const StepRequest<float>& each : state.requests)
    updates.push_back({.step = kFirstStep,
                       .parameters = each.parameters,
                       .state = each.state,
                       .gradient = each.gradient,
                       .length = learner.parameters(),
                       .peer = each.peer,
                       .rate_lead = each.rate_lead});
  learner.update(updates);
}

}  // namespace

TEST_CASE("a schedule that is ahead: steps have the size of the later step, on every path") {
  for (const Steps& steps : {Steps(three_steps), Steps(gradient_and_update)})
    for (const char* path : {"whole", "private", "cut", "muon"}) {
      CAPTURE(path);
      const std::vector<float> ahead = rows_after(steps, path, false, kLead);
      CHECK(ahead == rows_after(steps, path, true, 0));
      CHECK(ahead != rows_after(steps, path, false, 0));
      // One step less, and the first step is before the milestone.
      CHECK(ahead != rows_after(steps, path, false, kLead - 1));
    }
}
