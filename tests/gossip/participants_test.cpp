// Peers that join and leave: who gives rows to whom, and runs held to the same iterations in
// double.
#include <algorithm>
#include <cmath>

#include "gossip/engine/donors.hpp"
#include "tests/gossip/test_network.hpp"

using namespace gossamer;
using namespace gossamer::gossip;
using namespace gossamer::gossip::testing;

namespace {

using Texts = std::vector<std::string>;

std::unique_ptr<topology::MixingSchedule> changing(const std::string& kind, int n,
                                                   const Texts& participants) {
  return topology::make_schedule({kind, {}, {}, {n, 5}, participants}).value();
}

using Rows = std::vector<std::vector<double>>;

/// x ← W x in double; a peer that joins takes the row of its donor first.
Rows averaged(const Network& network, Round rounds) {
  Rows x;
  for (const std::vector<float>& row : network.start) x.emplace_back(row.begin(), row.end());
  const topology::MixingSchedule& schedule = network.matrices();
  const Donors donors(schedule);
  for (Round t = 0; t < rounds; ++t) {
    // A donor that joins itself has taken its rows before.
    for (bool changed = true; changed;) {
      changed = false;
      for (int i = 0; i < schedule.peers(); ++i) {
        const auto joining = donors.last(i, t);
        if (!joining || joining->round != t) continue;
        const std::vector<double>& given = x[static_cast<std::size_t>(joining->donor)];
        std::vector<double>& own = x[static_cast<std::size_t>(i)];
        changed = changed || own != given;
        own = given;
      }
    }
    Rows next = x;
    const auto w = schedule.at(t);
    for (int i = 0; i < w->peers(); ++i)
      for (const topology::Neighbour& j : w->in_neighbours(i))
        for (std::size_t k = 0; k < next[static_cast<std::size_t>(i)].size(); ++k)
          next[static_cast<std::size_t>(i)][k] +=
              j.weight *
              (x[static_cast<std::size_t>(j.peer)][k] - x[static_cast<std::size_t>(i)][k]);
    x = std::move(next);
  }
  return x;
}

void check_close(const Network& network, const Rows& due) {
  for (std::size_t i = 0; i < due.size(); ++i)
    for (std::size_t k = 0; k < due[i].size(); ++k) {
      CAPTURE(i);
      CHECK(std::abs(network.rows[i][k] - due[i][k]) <= 1e-5);
    }
}

}  // namespace

TEST_CASE("donors: the nearest neighbour that has rows, and the one that gives to fewest") {
  const auto path = changing("path", 8, {"2,3", "10: 0-7"});
  const Donors donors(*path);
  for (const auto& [peer, donor] :
       std::vector<std::pair<int, int>>{{0, 1}, {1, 2}, {4, 3}, {5, 4}, {6, 5}, {7, 6}}) {
    const auto joining = donors.last(peer, 99);
    REQUIRE(joining);
    CHECK(joining->round == 10);
    CHECK(joining->donor == donor);
  }
  CHECK_FALSE(donors.last(2, 99));
  CHECK_FALSE(donors.last(0, 9));
  REQUIRE(donors.receivers(2, 1, 10).size() == 1);
  CHECK(donors.receivers(2, 1, 10)[0].peer == 1);
  CHECK(donors.receivers(2, 1, 10)[0].round == 10);
  CHECK(donors.gives(2, 1, 10));
  CHECK_FALSE(donors.gives(2, 1, 9));
  CHECK_FALSE(donors.gives(1, 2, 10));
  CHECK(donors.receivers(2, 11, 99).empty());

  // Of three that stay, each gives to as many.
  const Donors shared(*changing("complete", 9, {"0-2", "4: 0-8"}));
  for (const int donor : {0, 1, 2}) CHECK(shared.receivers(donor, 0, 4).size() == 2);
  // A peer that comes back is one that joins.
  const Donors again(*changing("ring", 4, {"0-3", "5: 0,1", "9: 0-3"}));
  CHECK(again.last(3, 99)->round == 9);
  CHECK_FALSE(Donors(*changing("ring", 4, {})).last(1, 99));
}

TEST_CASE("peers that join and leave average as the iteration with their donors' rows does") {
  for (const char* kind : {"ring", "path", "complete", "base", "equistatic", "one_peer_exponential",
                           "random_matching", "star"})
    for (const Texts& participants :
         {Texts{"0-3", "6: 0-11", "14: 0-6"}, Texts{"1,4,7", "3: 4", "9: 0-11", "10: 4,5"},
          Texts{"0-11", "5: 2,3", "11: 0-11"},
          // The rows for the second joining arrive before the peer has begun the first.
          Texts{"0-11", "1: 0,1", "3: 0-11", "4: 0,1", "6: 0-3", "7: 1", "8: 0-11"}}) {
      CAPTURE(kind);
      CAPTURE(participants.back());
      Network network(changing(kind, 12, participants), 5);
      network.run("consensus", {}, 20);
      CHECK(network.fault.empty());
      CHECK(network.finished == 12);
      check_close(network, averaged(network, 20));
    }
}

TEST_CASE("a run with changes of participants goes on from any round with the same bits") {
  for (const char* algorithm : {"consensus", "push_sum"}) {
    CAPTURE(algorithm);
    const Texts participants{"0-3", "3: 0-7", "6: 1-4"};
    PullTrainer first(8, 4, 0.1F), second(8, 4, 0.1F);
    Network whole(changing("ring", 8, participants), 4),
        split(changing("ring", 8, participants), 4);
    Trainer* const trains = std::string(algorithm) == "push_sum" ? &first : nullptr;
    whole.run(algorithm, {}, 9, trains);
    split.run_in_single_rounds(algorithm, {}, 9, trains == nullptr ? nullptr : &second);
    for (const int peer : {1, 2, 3, 4})
      CHECK(whole.rows[static_cast<std::size_t>(peer)] ==
            split.rows[static_cast<std::size_t>(peer)]);
  }
}
