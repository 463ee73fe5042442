#include "simulator/oracle/reference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace gossamer::simulator {
namespace {

Row wide(const FloatRow& row) { return {row.begin(), row.end()}; }

double largest(const Row& row) {
  double most = 0;
  for (const double value : row) most = std::max(most, std::abs(value));
  return most;
}

/// a + factor · (b − c)
Row plus_difference(const Row& a, double factor, const Row& b, const Row& c) {
  Row sum(a.size());
  for (std::size_t k = 0; k < a.size(); ++k) sum[k] = a[k] + factor * (b[k] - c[k]);
  return sum;
}

class ReferenceBuilder {
 public:
  ReferenceBuilder(const Scenario& scenario, const RoundRecord& record)
      : scenario_(scenario), record_(record) {}

  ReferenceRound build() {
    const std::string& name = scenario_.algorithm;
    if (name == "consensus") mix(0, begin(0), end(0));
    else if (name == "dpsgd") scenario_.steps.order == "atc" ? dpsgd() : dpsgd_overlapped();
    else if (name == "gradient_tracking")
      scenario_.steps.order == "atc" ? tracking() : tracking_overlapped();
    else if (name == "push_pull") tracking();
    else if (name == "d2") d2();
    else if (name == "extra") extra();
    else if (name == "qg_momentum") quasi_global_momentum();
    else if (name == "dmsgd") mixed_momentum();
    else if (name == "decentlam") decentlam();
    else if (name == "push_sum") push_sum();
    else if (name == "async_push_sum" || name == "ad_psgd")
      return {};  // nothing is mixed: async_checks.cpp
    else
      round_.errors.push_back(fmt::format("runs {}, of which the oracle has no reference", name));
    return std::move(round_);
  }

 private:
  bool done() const { return !record_.end.empty(); }
  Row begin(std::size_t k) const { return wide(record_.begin[k]); }
  Row end(std::size_t k) const { return done() ? wide(record_.end[k]) : Row(); }
  /// The operation, where it has been done.
  const TrainRecord* trained(std::size_t index, TrainOperation operation) {
    if (index >= record_.trained.size()) {
      if (done()) round_.errors.emplace_back("ended without training");
      return nullptr;
    }
    if (record_.trained[index].operation != operation)
      round_.errors.emplace_back("trained in another order");
    return &record_.trained[index];
  }
  void mix(Channel channel, Row in, Row out, double slack = 0) {
    round_.mixes.push_back({channel, in, std::move(in), std::move(out), slack});
  }
  void same(const char* what, const Row& is, const Row& due, double slack) {
    for (std::size_t k = 0; k < due.size(); ++k)
      if (const double bound = 8 * kRounding * (slack + std::abs(due[k]));
          !(std::abs(is[k] - due[k]) <= bound)) {
        round_.errors.push_back(
            fmt::format("has {} = {:.9g} at value {}, where {:.9g} was due, to {:.2g}", what, is[k],
                        k, due[k], bound));
        return;
      }
  }
  void same(const char* what, const FloatRow& is, const FloatRow& due) {
    same(what, wide(is), wide(due), 0);
  }

  // x ← x − γ ∇f(x), H times;  x ← mix(x)
  void dpsgd() {
    const TrainRecord* local = trained(0, TrainOperation::local_steps);
    if (local != nullptr) same("x before its steps", local->before, record_.begin[0]);
    mix(0, local != nullptr ? wide(local->after) : Row(), end(0));
  }

  // u ← x after the steps;  x ← mix(x) + (u − x)
  void dpsgd_overlapped() {
    const Row x = begin(0);
    const TrainRecord* local = trained(0, TrainOperation::local_steps);
    if (!done() || local == nullptr) return mix(0, x, {});
    same("x before its steps", local->before, record_.begin[0]);
    mix(0, x, plus_difference(end(0), -1, wide(local->after), x),
        largest(x) + largest(wide(local->after)));
  }

  // y ← y + ∇f(x) − g;  g ← ∇f(x);  x ← mix(x − γ y);  y ← mix(y)
  void tracking() {
    const TrainRecord *fresh = trained(0, TrainOperation::gradient),
                      *update = trained(1, TrainOperation::update);
    mix(0, update != nullptr ? wide(update->after) : Row(), end(0));
    mix_tracker(fresh);
    if (update == nullptr) return;
    same("x before its step", update->before, record_.begin[0]);
    same("the step's gradient, the tracker", wide(update->gradient), tracker(*fresh),
         slack_of_tracker(*fresh));
    if (!done()) return;
    same("the last gradient", record_.end[2], fresh->gradient);
  }

  // y ← y + ∇f(x) − g;  g ← ∇f(x);  x ← mix(x) − γ y;  y ← mix(y)
  void tracking_overlapped() {
    const TrainRecord *fresh = trained(0, TrainOperation::gradient),
                      *update = trained(1, TrainOperation::update);
    mix(0, begin(0), update != nullptr ? wide(update->before) : Row());
    mix_tracker(fresh);
    if (!done() || update == nullptr) return;
    same("the step's gradient, the tracker", wide(update->gradient), tracker(*fresh),
         slack_of_tracker(*fresh));
    same("x after its step", record_.end[0], update->after);
    same("the last gradient", record_.end[2], fresh->gradient);
  }

  Row tracker(const TrainRecord& fresh) const {
    return plus_difference(begin(1), 1, wide(fresh.gradient), begin(2));
  }
  double slack_of_tracker(const TrainRecord& fresh) const {
    return largest(wide(fresh.gradient)) + largest(begin(2));
  }
  void mix_tracker(const TrainRecord* fresh) {
    if (fresh == nullptr) return mix(1, {}, end(1));
    mix(1, tracker(*fresh), end(1), slack_of_tracker(*fresh));
  }

  // z ← x − γ ∇f(x) − d;  x ← mix(z);  d ← d + (z − x)
  void d2() {
    const TrainRecord* update = trained(1, TrainOperation::update);
    if (update == nullptr) return mix(0, {}, end(0));
    const Row d = begin(1), z = plus_difference(wide(update->after), -1, d, Row(d.size()));
    mix(0, z, end(0), largest(d) + largest(z));
    if (done())
      same("the correction", end(1), plus_difference(d, 1, z, end(0)), largest(d) + largest(z));
  }

  // m ← mix(x);  x⁺ ← m − γ ∇f(x) − d;  d ← d + (x − m)/2
  void extra() {
    const Row x = begin(0), d = begin(1);
    const TrainRecord* update = trained(1, TrainOperation::update);
    const Row m = update != nullptr ? wide(update->before) : Row();
    mix(0, x, m);
    if (!done() || update == nullptr) return;
    same("x", end(0), plus_difference(wide(update->after), -1, d, Row(d.size())),
         largest(d) + largest(m));
    same("the correction", end(1), plus_difference(d, 0.5, x, m), largest(x) + largest(m));
  }

  // z ← x − γ (∇f(x) + μ m);  x⁺ ← mix(z);  m ← μ m + (1 − μ) (x − x⁺)/γ
  void quasi_global_momentum() {
    const TrainRecord* update = trained(1, TrainOperation::update);
    mix(0, update != nullptr ? wide(update->after) : Row(), end(0));
    if (!done() || update == nullptr) return;
    Row due = begin(1);
    for (double& value : due) value *= kMomentum;
    same("the momentum", end(1),
         plus_difference(due, (1 - kMomentum) / scenario_.steps.rate, begin(0), end(0)),
         largest(due) + (largest(begin(0)) + largest(end(0))) / scenario_.steps.rate);
  }

  // m ← β m + (x − u)/γ, where u is x after a step with ∇f(x);  x ← mix(x − γ m);  m ← mix(m)
  void mixed_momentum() {
    const TrainRecord* update = trained(1, TrainOperation::update);
    if (update == nullptr) {
      mix(1, {}, end(1));
      return mix(0, {}, end(0));
    }
    same("x before its step", update->before, record_.begin[0]);
    const Row x = begin(0), stepped = wide(update->after);
    Row m = begin(1);
    for (double& value : m) value *= kMomentum;
    m = plus_difference(m, 1 / scenario_.steps.rate, x, stepped);
    const double slack = largest(x) + largest(stepped);
    mix(1, m, end(1), largest(m) + slack / scenario_.steps.rate);
    mix(0, plus_difference(x, -scenario_.steps.rate, m, Row(m.size())), end(0),
        slack + scenario_.steps.rate * largest(m));
  }

  // z ← mix(x − γ ∇f(x));  x⁺ ← z − γ β m;  m ← β m + (x − z)/γ
  void decentlam() {
    const double rate = scenario_.steps.rate;
    const TrainRecord* update = trained(1, TrainOperation::update);
    if (!done() || update == nullptr)
      return mix(0, update != nullptr ? wide(update->after) : Row(), {});
    Row due = begin(1);
    for (double& value : due) value *= kMomentum;
    const Row z = plus_difference(end(0), rate, due, Row(due.size()));
    const double slack = largest(begin(0)) + largest(z) + rate * largest(due);
    mix(0, wide(update->after), z, slack);
    same("the momentum", end(1), plus_difference(due, 1 / rate, begin(0), z), slack / rate);
  }

  // x ← x − γ ∇f_i(z), z ← x/w, H times;  (x, w) ← Σ_j W_ij (x_j, w_j);  z ← x/w
  void push_sum() {
    const auto steps = static_cast<std::size_t>(scenario_.steps.local_steps);
    const TrainRecord* update = trained(2 * steps - 1, TrainOperation::update);
    if (update != nullptr)
      if (auto wrong = wrong_push_sum_steps(scenario_, record_)) round_.errors.push_back(*wrong);
    Row in;
    if (update != nullptr) {
      in = wide(update->after);
      in.push_back(record_.begin[1].back());
    }
    mix(1, in, end(1));
    if (!done()) return;
    Row z = end(1);
    const double weight = z.back();
    z.pop_back();
    for (double& value : z) value /= weight;
    same("x, sum over weight", end(0), z, 0);
  }

  static constexpr double kMomentum = 0.9;  // the default of the algorithms that have one

  const Scenario& scenario_;
  const RoundRecord& record_;
  ReferenceRound round_;
};

}  // namespace

std::optional<std::string> wrong_push_sum_steps(const Scenario& scenario,
                                                const RoundRecord& record) {
  const auto steps = static_cast<std::size_t>(scenario.steps.local_steps);
  if (record.trained.size() != 2 * steps)
    return fmt::format("trained {} times, where {} are due", record.trained.size(), 2 * steps);
  const double weight = record.begin[1].back();
  FloatRow sum = record.begin[1];
  sum.pop_back();
  for (std::size_t step = 0; step < steps; ++step) {
    const TrainRecord &gradient = record.trained[2 * step], &update = record.trained[2 * step + 1];
    if (gradient.operation != TrainOperation::gradient ||
        update.operation != TrainOperation::update)
      return "trained in another order";
    if (update.before != sum || update.gradient != gradient.gradient)
      return "stepped from elsewhere than its sum, or with another gradient";
    for (std::size_t k = 0; k < sum.size(); ++k)
      if (!(std::abs(gradient.before[k] * weight - sum[k]) <=
            4 * kRounding * std::abs(sum[k]) + 1e-37))
        return fmt::format(
            "took a gradient at {:.9g} at value {}, where its sum over its weight is {:.9g}",
            gradient.before[k], k, sum[k] / weight);
    sum = update.after;
  }
  return std::nullopt;
}

ReferenceRound reference_of(const Scenario& scenario, const RoundRecord& record) {
  return ReferenceBuilder(scenario, record).build();
}

}  // namespace gossamer::simulator
