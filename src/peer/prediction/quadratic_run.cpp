#include "peer/prediction/quadratic_run.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/linear_algebra/dense.hpp"
#include "train/shards.hpp"

namespace gossamer::peer {
namespace {

using theory::Method;

Error no_curve(std::string why) { return {ErrorKind::invalid, "curve: " + std::move(why)}; }

template <class Value>
Value value_of(const PluginChoice& choice, const std::string& key) {
  return std::get<Value>(choice.values.at(key));
}

Result<theory::Recipe> recipe_of(const Setup& setup) {
  const Config& config = setup.config;
  const std::string& kind = config.algorithm.kind;
  theory::Recipe recipe;
  if (kind == "dpsgd") {
    recipe.method = value_of<std::string>(config.algorithm, "order") == "awc" ? Method::dpsgd_awc
                                                                              : Method::dpsgd_atc;
    recipe.local_steps = static_cast<int>(value_of<std::int64_t>(config.algorithm, "local_steps"));
  } else if (kind == "gradient_tracking") {
    recipe.method = value_of<std::string>(config.algorithm, "order") == "awc"
                        ? Method::tracking_awc
                        : Method::tracking_atc;
  } else if (kind == "push_pull") {
    recipe.method = Method::push_pull;
  } else if (kind == "qg_momentum") {
    recipe.method = Method::qg_momentum;
    recipe.own_momentum = value_of<double>(config.algorithm, "momentum");
    recipe.own_nesterov = value_of<bool>(config.algorithm, "nesterov");
  } else if (kind == "dmsgd" || kind == "decentlam") {
    recipe.method = kind == "dmsgd" ? Method::dmsgd : Method::decentlam;
    recipe.own_momentum = value_of<double>(config.algorithm, "momentum");
  } else if (kind == "push_sum" || kind == "async_push_sum") {
    recipe.method = Method::push_sum;
    recipe.local_steps = static_cast<int>(value_of<std::int64_t>(config.algorithm, "local_steps"));
  } else if (kind == "d2") {
    recipe.method = Method::d2;
  } else if (kind == "extra") {
    recipe.method = Method::extra;
  } else if (kind == "allreduce" || kind == "centralized") {
    recipe.method = Method::gradient_descent;
  } else {
    return no_curve(fmt::format("'{}' is not known as a linear iteration", kind));
  }
  const train::OptimizerOptions& optimizer = config.optimizer;
  if (optimizer.rule.kind != gpu::UpdateRule::Kind::sgd)
    return no_curve(
        "the steps of Adam and Muon are not linear in the gradient; with optimizer.kind = sgd "
        "there "
        "is one");
  recipe.momentum = optimizer.rule.momentum;
  recipe.nesterov = optimizer.rule.nesterov;
  recipe.weight_decay = optimizer.rule.weight_decay;
  recipe.rate = [&trainer = *setup.workload->trainer()](std::uint64_t step) {
    return trainer.rate(0, step);
  };
  const train::ScheduleOptions& schedule = optimizer.schedule;
  std::uint64_t changes = schedule.warmup_steps;
  for (const int milestone : schedule.milestones)
    changes = std::max(changes, static_cast<std::uint64_t>(milestone));
  if (schedule.schedule != "cosine") recipe.settled_rate = recipe.rate(changes);
  return recipe;
}

/// Whether the model is x ↦ a·x with squared error, whose mean over a shard is quadratic.
bool is_least_squares(const Setup& setup) {
  const train::Dataset& data = *setup.workload->spec().data;
  const auto model = train::make_model(setup.config.model.kind,
                                       {data.channels, data.height, data.width, data.classes},
                                       setup.config.model.values);
  if (!model.ok() || model->loss != train::Loss::squared_error || model->operations.size() != 1)
    return false;
  const auto* dense = std::get_if<train::Dense>(&model->operations.front().op);
  return dense != nullptr && !dense->bias && dense->activation == train::Activation::none;
}

/// f_i of every shard, from the samples as stored: A = (1/m) Σ a aᵀ, h = A x* − (1/m) Σ y a.
Result<theory::Quadratics> functions_of(const Setup& setup, const train::Shards& shards) {
  constexpr double kMaxElements = 5e7, kRounding = 1e-6;  // samples are float32
  const train::Dataset& data = *setup.workload->spec().data;
  const auto n = static_cast<Eigen::Index>(shards.size()),
             d = static_cast<Eigen::Index>(data.feature_count());
  if (static_cast<double>(n) * static_cast<double>(d * d) > kMaxElements)
    return no_curve(fmt::format(
        "the Hessians of {} peers have {} × {} elements each, too many to store", n, d, d));
  theory::Quadratics functions;
  functions.optimum = Eigen::Map<const Eigen::RowVectorXd>(data.optimum->data(), d);
  functions.gradients.resize(n, d);
  Eigen::MatrixXd mean = Eigen::MatrixXd::Zero(d, d);
  for (Eigen::Index i = 0; i < n; ++i) {
    const auto& shard = shards[static_cast<std::size_t>(i)];
    const auto samples = static_cast<Eigen::Index>(shard.size());
    Eigen::MatrixXd a(d, samples);
    Eigen::VectorXd y(samples);
    for (Eigen::Index s = 0; s < samples; ++s) {
      const std::size_t sample = shard[static_cast<std::size_t>(s)];
      a.col(s) =
          Eigen::Map<const Eigen::VectorXf>(data.features.data() + sample * data.feature_count(), d)
              .cast<double>();
      y(s) = data.targets[sample];
    }
    Eigen::MatrixXd& hessian =
        functions.hessians.emplace_back(gram_of_rows(a) / static_cast<double>(samples));
    functions.gradients.row(i) =
        functions.optimum * hessian - (a * y / static_cast<double>(samples)).transpose();
    mean += hessian / static_cast<double>(n);
  }
  const bool equal = std::all_of(functions.hessians.begin(), functions.hessians.end(),
                                 [&](const Eigen::MatrixXd& hessian) {
                                   return (hessian - mean).norm() <= kRounding * mean.norm();
                                 });
  if (equal) functions.hessians = {mean};
  return functions;
}

theory::RowMatrix initial_rows(const Setup& setup) {
  theory::RowMatrix start(setup.config.run.peers, static_cast<Eigen::Index>(setup.parameters));
  std::vector<float> row(setup.parameters);
  const bool one_model = setup.algorithm->requirements().one_node;
  for (Eigen::Index i = 0; i < start.rows(); ++i) {
    setup.workload->initialise(one_model ? 0 : static_cast<int>(i), row);
    start.row(i) = Eigen::Map<const Eigen::RowVectorXf>(row.data(), start.cols()).cast<double>();
  }
  return start;
}

}  // namespace

Result<theory::QuadraticRun> quadratic_run(const Setup& setup, std::vector<gossip::Round> rounds) {
  const Config& config = setup.config;
  if (!gossip::is_lockstep(config.exchange.kind()))
    return no_curve(fmt::format("under policy {} it depends on which rows arrive in time",
                                config.exchange.policy));
  if (!setup.workload->spec().data || !setup.workload->spec().data->optimum ||
      !is_least_squares(setup))
    return no_curve(
        "the theory has no curve for this loss; it has one for linear regression without bias "
        "(model linear on data quadratic or linear) and for consensus");
  GOSSAMER_TRY(theory::Recipe recipe, recipe_of(setup));
  GOSSAMER_TRY(const train::Shards shards,
               train::make_shards(*setup.workload->spec().data, config.shards, config.run.peers,
                                  config.run.seed));
  const auto batch = static_cast<std::size_t>(config.shards.batch);
  if (batch > 0 && std::any_of(shards.begin(), shards.end(),
                               [&](const auto& shard) { return shard.size() != batch; }))
    return no_curve(
        "the noise of batch gradients depends on x; data.batch = 0 uses full gradients");
  GOSSAMER_TRY(theory::Quadratics functions, functions_of(setup, shards));
  return theory::QuadraticRun{*setup.schedule,
                              std::move(recipe),
                              std::move(functions),
                              initial_rows(setup),
                              setup.workload->spec().data->gradient_noise,
                              std::move(rounds)};
}

}  // namespace gossamer::peer
