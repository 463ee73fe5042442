// The learner: it learns, its functions agree with each other, and requests that do not fit
// together are refused.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "tests/text_test_util.hpp"
#include "tests/train/learner/blobs_test_util.hpp"

using namespace gossamer;
using namespace gossamer::train;

namespace {

/// The four points (k, 2k), and a line through the origin.
LearnerRequest line_request(Shards shards) {
  auto data = std::make_shared<Dataset>();
  data->name = "line";
  data->count = data->train_count = 4;
  data->features = {1, 2, 3, 4}, data->targets = {2, 4, 6, 8};
  LearnerRequest request;
  request.data = data;
  request.shards = std::move(shards);
  request.model = chain({Dense{.units = 1, .bias = false}}, Loss::squared_error);
  request.sampling.batch = 0;
  return request;
}

}  // namespace

TEST_CASE_TEMPLATE("peers learn to classify three classes", Real, float, double) {
  gpu::BasicCpuDevice<Real> device(2);
  const auto learns = learner<Real>(request(4), device);
  State<Real> state(*learns, 4);
  EvaluateRequest<Real> before{state.x.row(0).data(), {}}, after = before;
  learns->evaluate(std::span(&before, 1));
  state.at(0, 60);
  learns->local_steps(state.requests);
  learns->evaluate(std::span(&after, 1));
  CHECK(after.result.loss < 0.1 * before.result.loss);
  CHECK(after.result.accuracy == 1);
  for (double loss : state.losses) CHECK(loss > 0);
}

TEST_CASE(
    "H steps in one request, one by one, and gradient + update: the same bits, for every "
    "optimizer") {
  using Kind = gpu::UpdateRule::Kind;
  gpu::CpuDevice device(1);
  auto with_noise = request(3);
  auto data = std::make_shared<Dataset>(*with_noise.data);
  data->gradient_noise = 0.1;
  with_noise.data = data;
  with_noise.local_steps = 9;
  const gpu::UpdateRule rules[] = {{.momentum = 0.9, .nesterov = true, .weight_decay = 0.01},
                                   {.weight_decay = 0.01, .kind = Kind::adam},
                                   {.weight_decay = 0.01, .kind = Kind::adamw}};
  for (const gpu::UpdateRule& rule : rules) {
    with_noise.optimizer = {
        .rate = 0.1, .rule = rule, .schedule = {.schedule = "cosine", .warmup_steps = 4}};
    const auto learns = learner<float>(with_noise, device);
    State<float> together(*learns, 3), single(*learns, 3), split(*learns, 3);
    together.at(2, 5);
    learns->local_steps(together.requests);
    for (std::uint64_t step = 2; step < 7; ++step) {
      single.at(step);
      learns->local_steps(single.requests);
      split.at(step);
      learns->gradient(split.requests);
      std::vector<UpdateRequest<float>> updates;
      for (std::size_t p = 0; p < 3; ++p)
        updates.push_back({.step = step,
                           .parameters = split.x.row(p).data(),
                           .state = {split.v.row(p).data(), split.w.row(p).data()},
                           .gradient = split.g.row(p).data(),
                           .length = split.g.length()});
      learns->update(updates);
    }
    CHECK(together.all() == single.all());
    CHECK(together.all() == split.all());
    CHECK(together.losses == single.losses);
    CHECK(together.losses == split.losses);
  }
}

TEST_CASE("a subset of the peers, in any order, on any number of threads: the same bits") {
  gpu::CpuDevice one(1), four(4);
  const auto a = learner<float>(request(6), one), b = learner<float>(request(6), four);
  State<float> all(*a, 6), some(*b, 6);
  all.at(0, 9);
  a->local_steps(all.requests);
  some.at(0, 9);
  std::vector<StepRequest<float>> part{some.requests[4], some.requests[1]};
  b->local_steps(part);
  for (std::size_t p : {std::size_t{1}, std::size_t{4}})
    CHECK(std::equal(all.x.row(p).begin(), all.x.row(p).end(), some.x.row(p).begin()));
  CHECK(some.losses[4] == all.losses[4]);
}

TEST_CASE("gradient noise: right deviation, keyed by peer and step") {
  gpu::BasicCpuDevice<double> device(1);
  LearnerRequest quiet = request(2), noisy = request(2);
  for (auto* r : {&quiet, &noisy})
    r->model = chain({Dense{.units = 300, .activation = Activation::relu}, Dense{.units = 3}},
                     r->model.loss);
  auto data = std::make_shared<Dataset>(*noisy.data);
  data->gradient_noise = 0.5;
  noisy.data = data;
  const auto plain = learner<double>(quiet, device), with = learner<double>(noisy, device);
  State<double> a(*plain, 2), b(*with, 2), c(*with, 2);
  plain->gradient(a.requests);
  with->gradient(b.requests);
  c.at(1);
  with->gradient(c.requests);
  const auto noise = [&](const State<double>& s, std::size_t p) {
    std::vector<double> values;
    for (std::size_t i = 0; i < s.g.length(); ++i) values.push_back(s.g.row(p)[i] - a.g.row(p)[i]);
    return values;
  };
  double square = 0;
  for (double value : noise(b, 0)) square += value * value;
  CHECK(std::sqrt(square / static_cast<double>(a.g.length())) ==
        doctest::Approx(0.5).epsilon(0.05));
  CHECK(noise(b, 0) != noise(b, 1));
  RandomStream stream(3, 1, Purpose::gradient_noise, 0);
  CHECK(noise(b, 1)[0] == doctest::Approx(0.5 * stream.next_normal()));
}

TEST_CASE(
    "evaluation: on the test split, else on the training split, any number of pieces and threads") {
  gpu::BasicCpuDevice<double> device(3);
  LearnerRequest with_tests = request(2), without = request(2);
  auto all = std::make_shared<Dataset>(*without.data);
  all->train_count = all->count;
  without.data = all;
  const auto tested = learner<double>(with_tests, device),
             trained = learner<double>(without, device);
  State<double> state(*tested, 2);
  const auto by_hand = [&](std::size_t begin,
                           std::size_t end) {  // mean loss of the samples [begin, end)
    double loss = 0;
    const auto x = state.x.row(0);
    for (std::size_t i = begin; i < end; ++i) {
      double z[3], sum = 0;
      for (std::size_t c = 0; c < 3; ++c) {
        z[c] = x[6 + c] + all->features[2 * i] * x[c] + all->features[2 * i + 1] * x[3 + c];
        sum += std::exp(z[c]);
      }
      loss += std::log(sum) - z[all->labels[i]];
    }
    return loss / static_cast<double>(end - begin);
  };
  std::vector<EvaluateRequest<double>> requests(2, {state.x.row(0).data(), {}});
  tested->evaluate(requests);
  CHECK(requests[0].result.loss == doctest::Approx(by_hand(120, 130)).epsilon(1e-12));
  CHECK(requests[0].result.loss == requests[1].result.loss);
  trained->evaluate(requests);  // 130 samples: three pieces
  CHECK(requests[1].result.loss == doctest::Approx(by_hand(0, 130)).epsilon(1e-12));
}

TEST_CASE("an evaluation in chunks of jobs has the bits of one at once") {
  gpu::CpuDevice device(2);
  LearnerRequest whole = request(5);
  auto all = std::make_shared<Dataset>(*whole.data);
  all->train_count = all->count;  // 130 samples: three jobs for each row
  whole.data = all;
  whole.different_initial = true;
  const auto at_once = learner<float>(whole, device);
  State<float> state(*at_once, 5);
  const auto evaluate = [&](Learner<float>& learner) {
    std::vector<EvaluateRequest<float>> requests;
    for (std::size_t p = 0; p < 5; ++p) requests.push_back({state.x.row(p).data(), {}});
    learner.evaluate(requests);
    std::vector<double> figures;
    for (const auto& each : requests) {
      figures.push_back(each.result.loss);
      figures.push_back(each.result.accuracy);
    }
    return figures;
  };
  const std::vector<double> expected = evaluate(*at_once);
  CHECK(expected[0] != expected[8]);
  for (const std::size_t jobs : {1, 3, 7, 14, 15}) {  // 1, 1, 2, 4 and 5 rows at a time
    LearnerRequest chunked = whole;
    chunked.evaluation_jobs = jobs;
    CHECK(evaluate(*learner<float>(chunked, device)) == expected);
  }
}

TEST_CASE("regression: full gradients, the loss is ½ (ŷ − y)², and no accuracy") {
  LearnerRequest request = line_request({{0, 1}, {2, 3}});
  request.optimizer.rate = 0.05;
  gpu::BasicCpuDevice<double> device(1);
  const auto learns = learner<double>(request, device);
  State<double> state(*learns, 2);
  state.x.row(0)[0] = state.x.row(1)[0] = 0;
  learns->gradient(state.requests);
  CHECK(state.g.row(0)[0] == doctest::Approx(-(1 * 2 + 2 * 4) / 2.0));
  CHECK(state.g.row(1)[0] == doctest::Approx(-(3 * 6 + 4 * 8) / 2.0));
  CHECK(state.losses[0] == doctest::Approx(0.5 * (4 + 16) / 2));
  EvaluateRequest<double> evaluate{state.x.row(0).data(), {}};
  learns->evaluate(std::span(&evaluate, 1));
  CHECK(evaluate.result.loss == doctest::Approx(0.5 * (4 + 16 + 36 + 64) / 4));
  CHECK(std::isnan(evaluate.result.accuracy));
}

// Shards of 3 and 1 of 4 samples: weights 2 · 3/4 and 2 · 1/4.
TEST_CASE("weighted by samples, the mean of the peers' gradients is that of all samples") {
  const auto gradients = [](const std::string& weights, bool weigh_gradients, double clip) {
    LearnerRequest request = line_request({{0, 1, 2}, {3}});
    request.sampling.weights = weights;
    request.weigh_gradients = weigh_gradients;
    if (clip > 0)
      request.optimizer.privacy = {
          .clip = clip, .noise_multiplier = 1e-12, .noise = "reproducible"};
    gpu::BasicCpuDevice<double> device(1);
    const auto learns = learner<double>(request, device);
    CHECK(learns->data_weight(0) == (weights == "samples" ? 1.5 : 1.0));
    CHECK(learns->data_weight(1) == (weights == "samples" ? 0.5 : 1.0));
    State<double> state(*learns, 2);
    state.x.row(0)[0] = state.x.row(1)[0] = 0;
    learns->gradient(state.requests);
    CHECK(state.losses[0] == doctest::Approx(0.5 * (4 + 16 + 36) / 3));
    CHECK(state.losses[1] == doctest::Approx(0.5 * 64));
    return std::pair(state.g.row(0)[0], state.g.row(1)[0]);
  };
  const double first = -(1 * 2 + 2 * 4 + 3 * 6) / 3.0, second = -4 * 8;
  for (const double clip : {0.0, 1e3}) {
    const auto [by_peers, other] = gradients("peers", true, clip);
    CHECK(by_peers == doctest::Approx(first));
    CHECK(other == doctest::Approx(second));
    const auto [a, b] = gradients("samples", true, clip);
    CHECK(a == doctest::Approx(1.5 * first));
    CHECK(b == doctest::Approx(0.5 * second));
    CHECK((a + b) / 2 == doctest::Approx(-(1 * 2 + 2 * 4 + 3 * 6 + 4 * 8) / 4.0));
    CHECK(gradients("samples", false, clip).first == doctest::Approx(first));
  }
}

TEST_CASE("the loss of a row on a batch of a peer is that of the gradient, and changes nothing") {
  gpu::BasicCpuDevice<double> device(2);
  const auto learns = learner<double>(request(2), device);
  State<double> state(*learns, 2);
  state.at(5, 1);
  learns->gradient(state.requests);
  const auto before = std::vector<double>(state.x.row(1).begin(), state.x.row(1).end());
  std::vector<LossRequest<double>> losses{{0, 5, state.x.row(0).data()},
                                          {1, 5, state.x.row(1).data()},
                                          {0, 5, state.x.row(1).data()},
                                          {0, 6, state.x.row(0).data()}};
  learns->batch_loss(losses);
  CHECK(losses[0].loss == doctest::Approx(state.losses[0]).epsilon(1e-12));
  CHECK(losses[1].loss == doctest::Approx(state.losses[1]).epsilon(1e-12));
  CHECK(losses[2].loss == losses[0].loss);  // both peers start from equal rows
  CHECK(losses[3].loss != losses[0].loss);
  CHECK(std::equal(before.begin(), before.end(), state.x.row(1).begin()));
}

TEST_CASE("equal or different initial parameters") {
  gpu::CpuDevice device(1);
  LearnerRequest own = request(2);
  own.different_initial = true;
  const auto alike = learner<float>(request(2), device), different = learner<float>(own, device);
  State<float> a(*alike, 2), b(*different, 2);
  CHECK(std::equal(a.x.row(0).begin(), a.x.row(0).end(), a.x.row(1).begin()));
  CHECK_FALSE(std::equal(b.x.row(0).begin(), b.x.row(0).end(), b.x.row(1).begin()));
}

TEST_CASE("float follows double over many steps") {
  gpu::CpuDevice device(1);
  gpu::BasicCpuDevice<double> exact_device(1);
  const auto single = learner<float>(request(1), device);
  const auto exact = learner<double>(request(1), exact_device);
  State<float> a(*single, 1);
  State<double> b(*exact, 1);
  a.at(0, 40), b.at(0, 40);
  single->local_steps(a.requests);
  exact->local_steps(b.requests);
  for (std::size_t i = 0; i < a.x.length(); ++i)
    CHECK(std::abs(a.x.row(0)[i] - b.x.row(0)[i]) < 1e-5);
}

TEST_CASE("data, shards and models that do not fit each other are refused") {
  auto changed = [](auto change) {
    LearnerRequest r = request(2);
    auto data = std::make_shared<Dataset>(*r.data);
    change(r, *data);
    r.data = data;
    return refusal(std::move(r));
  };
  CHECK(contains(changed([](auto& r, auto&) { r.shards.clear(); }), "no shards"));
  CHECK(contains(changed([](auto& r, auto&) { r.shards[1].clear(); }), "peer 1"));
  CHECK(contains(changed([](auto& r, auto&) { r.shards[1] = {125}; }), "batch"));
  CHECK(contains(changed([](auto& r, auto&) { r.shards[1].push_back(125); }), "sample 125"));
  CHECK(contains(changed([](auto& r, auto&) { r.sampling.batch = 61; }), "61"));
  CHECK(contains(changed([](auto&, auto& d) { d.labels[7] = 3; }), "label 3"));
  CHECK(contains(changed([](auto&, auto& d) { d.features.pop_back(); }), "feature values"));
  CHECK(contains(changed([](auto&, auto& d) { d.train_count = 0; }), "to train on"));
  CHECK(contains(changed([](auto& r, auto&) { r.model.loss = Loss::squared_error; }), "classes"));
  CHECK(
      contains(changed([](auto& r, auto&) { r.model = chain({Dense{.units = 4}}, r.model.loss); }),
               "4 values"));
  CHECK(contains(changed([](auto& r, auto&) {
                   r.model = chain({Embedding{.vocabulary = 5, .features = 2}, Dense{.units = 3}},
                                   r.model.loss);
                 }),
                 "embeds tokens 0 to 4"));
}
