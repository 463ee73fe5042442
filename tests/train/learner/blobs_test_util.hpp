// Vocabulary of the tests of learners: peers that learn three classes in the plane, and their rows.
#pragma once

#include <cmath>
#include <memory>
#include <vector>

#include "base/philox.hpp"
#include "base/rows.hpp"
#include "tests/train/learner/learner_test_util.hpp"

namespace gossamer::train {

/// Three classes in the plane, well apart; `count` samples, the last `tests` of them for testing.
inline std::shared_ptr<Dataset> three_blobs(std::size_t count, std::size_t tests) {
  auto data = std::make_shared<Dataset>();
  data->name = "blobs";
  data->width = 2, data->classes = 3;
  data->count = count, data->train_count = count - tests;
  RandomStream random(1, kNoPeer, Purpose::test);
  for (std::size_t i = 0; i < count; ++i) {
    const int label = static_cast<int>(i % 3);
    data->labels.push_back(label);
    data->features.push_back(
        static_cast<float>(3 * std::cos(2.1 * label) + 0.3 * random.next_normal()));
    data->features.push_back(
        static_cast<float>(3 * std::sin(2.1 * label) + 0.3 * random.next_normal()));
  }
  return data;
}

inline Shards equal_shards(const Dataset& data, std::size_t peers) {
  Shards shards(peers);
  for (std::uint32_t i = 0; i < data.train_count; ++i)
    shards[i * peers / data.train_count].push_back(i);
  return shards;
}

inline LearnerRequest request(std::size_t peers, int batch = 8) {
  auto data = three_blobs(130, 10);
  LearnerRequest request;
  request.data = data;
  request.shards = equal_shards(*data, peers);
  request.model = chain({Dense{.units = 3}}, Loss::softmax_cross_entropy);
  request.sampling.batch = batch;
  request.optimizer = {.rate = 0.1, .rule = {.momentum = 0.5}};
  request.seed = 3;
  return request;
}

/// Rows of every peer, and the requests over them.
template <class Real>
struct State {
  State(Learner<Real>& learner, std::size_t peers)
      : x(peers, learner.parameters()),
        v(peers, learner.parameters()),
        w(peers, learner.parameters()),
        g(peers, learner.parameters()),
        losses(peers) {
    for (std::size_t p = 0; p < peers; ++p) {
      learner.initialise(static_cast<int>(p), x.row(p));
      requests.push_back({.peer = static_cast<int>(p),
                          .parameters = x.row(p).data(),
                          .state = {v.row(p).data(), w.row(p).data()},
                          .gradient = g.row(p).data(),
                          .loss = &losses[p]});
    }
  }
  void at(std::uint64_t step, int steps = 1) {
    for (auto& r : requests) r.first_step = step, r.steps = steps;
  }
  std::vector<Real> all() const {
    std::vector<Real> values;
    for (std::size_t p = 0; p < x.count(); ++p)
      values.insert(values.end(), x.row(p).begin(), x.row(p).end());
    return values;
  }
  Rows<Real> x, v, w, g;       ///< v and w: the optimizer's
  std::vector<double> losses;  ///< sums over the steps
  std::vector<StepRequest<Real>> requests;
};

}  // namespace gossamer::train
