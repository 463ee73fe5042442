// What rows tell of updates: graphs where the answer is known, and the errors of estimates of
// random updates against the share that is said to be explained.
#include "theory/reconstruction.hpp"

#include <cmath>

#include "tests/theory/test_util.hpp"

using namespace gossamer;
using namespace gossamer::theory;
using namespace gossamer::theory::test;

namespace {

/// Updates of one value: [round](peer), with the given correlation from round to round.
std::vector<Eigen::VectorXd> updates(RandomStream& random, int peers, Round rounds,
                                     double similarity) {
  const Eigen::VectorXd common = normal(random, peers, 1);
  std::vector<Eigen::VectorXd> drawn;
  for (Round t = 0; t < rounds; ++t)
    drawn.emplace_back(std::sqrt(similarity) * common +
                       std::sqrt(1 - similarity) * normal(random, peers, 1));
  return drawn;
}

/// The rows that the peers send, from a start of zeros, by the definition of a round.
std::vector<Eigen::VectorXd> sent(const MixingSchedule& schedule,
                                  const std::vector<Eigen::VectorXd>& updates,
                                  double consensus_rate = 1) {
  std::vector<Eigen::VectorXd> rows;
  Eigen::VectorXd x = Eigen::VectorXd::Zero(updates[0].size());
  for (std::size_t t = 0; t < updates.size(); ++t) {
    rows.emplace_back(x + updates[t]);
    x = rows.back() +
        consensus_rate * (topology::dense(*schedule.at(t)) * rows.back() - rows.back());
  }
  return rows;
}

double estimate(const Reconstruction& known, const std::vector<Eigen::VectorXd>& rows, int peer,
                Round t) {
  const Eigen::VectorXd weights = known.weights(peer, t);
  double sum = 0;
  for (std::size_t k = 0; k < known.rows().size(); ++k)
    sum += weights[static_cast<Eigen::Index>(k)] * rows[known.rows()[k].t](known.rows()[k].peer);
  return sum;
}

}  // namespace

TEST_CASE("whoever receives all rows knows all updates") {
  const auto schedule = network("complete", 6).schedule();
  const Reconstruction known(*schedule, {2}, 5, {});
  RandomStream random(3, kNoPeer, Purpose::data);
  const auto drawn = updates(random, 6, 5, 0);
  const auto rows = sent(*schedule, drawn);
  for (int peer = 0; peer < 6; ++peer)
    for (Round t = 0; t < 5; ++t) {
      CHECK(known.share(peer, t) == doctest::Approx(1).epsilon(1e-6));
      CHECK(estimate(known, rows, peer, t) == doctest::Approx(drawn[t](peer)).epsilon(1e-4));
    }
  CHECK(known.best_round(0) == 0);
}

TEST_CASE("one round shows the updates of in-neighbours, and nothing else") {
  const auto ring = network("ring", 8).schedule();
  const Reconstruction one(*ring, {3}, 1, {});
  CHECK(one.rows() == std::vector<SentRow>{{2, 0}, {3, 0}, {4, 0}});
  for (int peer = 0; peer < 8; ++peer)
    CHECK(one.share(peer, 0) == doctest::Approx(std::abs(peer - 3) <= 1 ? 1 : 0).epsilon(1e-6));
  // An edge of a directed graph tells the receiver only.
  // Here each peer hears one other in a round, and in the second round what that heard in the
  // first.
  const auto directed = network("one_peer_exponential", 8).schedule();
  const Reconstruction two(*directed, {3}, 2, {});
  int heard = 0;
  for (int peer = 0; peer < 8; ++peer) heard += two.share(peer, 0) > 1e-6 ? 1 : 0;
  CHECK(heard == 4);
}

TEST_CASE("observers together know what each of them knows, and more") {
  const auto schedule = network("ring", 9).schedule();
  const RowModel model{.similarity = 0.3};
  const Reconstruction a(*schedule, {0}, 6, model), b(*schedule, {4}, 6, model),
      both(*schedule, {0, 4}, 6, model);
  double more = 0;
  for (int peer = 0; peer < 9; ++peer)
    for (Round t = 0; t < 6; ++t) {
      const double alone = std::max(a.share(peer, t), b.share(peer, t));
      CHECK(both.share(peer, t) >= alone - 1e-9);
      more = std::max(more, both.share(peer, t) - alone);
    }
  CHECK(more > 0.05);
}

TEST_CASE("updates that hardly change are known at any distance, after enough rounds") {
  const auto path = network("path", 5).schedule();
  const Reconstruction varied(*path, {0}, 12, {}), alike(*path, {0}, 12, {.similarity = 0.999});
  CHECK(varied.share(4, varied.best_round(4)) < 0.05);
  CHECK(alike.share(4, alike.best_round(4)) > 0.9);
}

TEST_CASE("the error of an estimate is the share that is not explained") {
  struct Case {
    const char* kind;
    int peers;
    RowModel model;
  };
  for (const auto& [kind, peers, model] :
       {Case{"path", 5, {}}, Case{"ring", 6, {.similarity = 0.5}},
        Case{"exponential", 8, {.similarity = 0.9}}, Case{"star", 5, {.similarity = 0.4}},
        Case{"one_peer_exponential", 8, {.similarity = 0.2}},
        Case{"ring", 6, {.similarity = 0.3, .consensus_rate = 0.4, .noise = 0.2}}}) {
    CAPTURE(kind);
    constexpr Round kRounds = 5;
    constexpr int kDraws = 4000;
    const auto schedule = network(kind, peers).schedule();
    const Reconstruction known(*schedule, {1}, kRounds, model);
    RandomStream random(7, kNoPeer, Purpose::data);
    Eigen::MatrixXd squares = Eigen::MatrixXd::Zero(peers, kRounds);
    for (int draw = 0; draw < kDraws; ++draw) {
      const auto drawn = updates(random, peers, kRounds, model.similarity);
      auto rows = sent(*schedule, drawn, model.consensus_rate);
      for (Eigen::VectorXd& row : rows) {
        const double own = row(1);  // which the observer knows as it is
        row += std::sqrt(model.noise) * normal(random, peers, 1);
        row(1) = own;
      }
      for (int peer = 0; peer < peers; ++peer)
        for (Round t = 0; t < kRounds; ++t)
          squares(peer, static_cast<Eigen::Index>(t)) +=
              std::pow(estimate(known, rows, peer, t) - drawn[t](peer), 2) / kDraws;
    }
    for (int peer = 0; peer < peers; ++peer)
      for (Round t = 0; t < kRounds; ++t)  // 4000 squares: a standard deviation of 2.2 %
        CHECK(std::abs(squares(peer, static_cast<Eigen::Index>(t)) - (1 - known.share(peer, t))) <
              0.08 * (1 - known.share(peer, t)) + 1e-6);
  }
}
