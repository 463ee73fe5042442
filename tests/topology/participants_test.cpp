// Who takes part in which rounds: what the texts say, what is refused, and the schedule whose
// topology is made anew with each change.
#include "topology/participants/participants.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "topology/kind.hpp"
#include "topology/mixing_matrix.hpp"
#include "topology/participants/changing_schedule.hpp"
#include "topology/recent_rounds.hpp"

using namespace gossamer;
using namespace gossamer::topology;

namespace {

using Texts = std::vector<std::string>;

Participants participants(const Texts& texts, int peers = 16) {
  return Participants::parse(texts, peers, "run.participants").value();
}

ScheduleRequest request(const std::string& kind, const Texts& texts, int peers = 16) {
  return {kind, {}, {}, {peers, 5}, texts};
}

std::unique_ptr<MixingSchedule> schedule(const std::string& kind, const Texts& texts,
                                         int peers = 16) {
  return make_schedule(request(kind, texts, peers)).value();
}

double entry(const MixingMatrix& w, int i, int j) {
  if (i == j) return w.self_weight(i);
  const auto row = w.in_neighbours(i);
  const auto found = std::ranges::find(row, j, &Neighbour::peer);
  return found == row.end() ? 0 : found->weight;
}

}  // namespace

TEST_CASE("participants: which peers take part in which rounds") {
  const Participants grown = participants({"0-3", "20: 0-15", "40: 0-2, 4-6"});
  CHECK(grown.peers() == 16);
  CHECK(grown.changes().size() == 3);
  CHECK(grown.at(0).peers == std::vector{0, 1, 2, 3});
  CHECK(grown.at(19).first == 0);
  CHECK(grown.at(20).peers.size() == 16);
  CHECK(grown.at(1'000'000).peers == std::vector{0, 1, 2, 4, 5, 6});
  CHECK_FALSE(grown.takes_part(4, 19));
  CHECK(grown.takes_part(4, 20));
  CHECK(grown.takes_part(16, 0));  // a server
  CHECK(grown.next_round(4, 0) == 20);
  CHECK(grown.next_round(4, 30) == 30);
  CHECK_FALSE(grown.next_round(3, 40));
  CHECK(grown.end_of(3) == 40);
  CHECK(grown.end_of(15) == 40);
  CHECK_FALSE(grown.end_of(4));
  CHECK(grown.missed(4, 10) == 10);
  CHECK(grown.missed(4, 50) == 20);
  CHECK(grown.missed(3, 50) == 10);
  CHECK(grown.counts_after(3, 0));
  CHECK_FALSE(grown.counts_after(4, 20));
  CHECK(grown.counts_after(4, 21));
  CHECK(grown.counts_after(3, 40));
  CHECK_FALSE(grown.counts_after(3, 41));
  CHECK_FALSE(grown.are_all());
  CHECK(grown.texts() == Texts{"0-3", "20: 0-15", "40: 0-2,4-6"});

  const Participants back = participants({"0-3", "10: 0,1", "20: 0-3"});
  CHECK(back.next_round(2, 10) == 20);
  CHECK(back.missed(2, 25) == 10);
  CHECK_FALSE(back.end_of(2));
}

TEST_CASE("without texts, or with all ids, all take part in all rounds") {
  CHECK(participants({}).are_all());
  CHECK(participants({"0-15"}).are_all());
  CHECK_FALSE(participants({"0-14"}).are_all());
  CHECK(participants({"0-14"}).end_of(15) == 0);
  CHECK(participants({}).texts().empty());
  CHECK(schedule("ring", {"0-15"})->hash() == schedule("ring", {})->hash());
  CHECK(schedule("ring", {})->parts().size() == 1);
}

TEST_CASE("texts that say nothing, or the impossible, are refused with a sentence") {
  for (const auto& [texts, part] : std::vector<std::pair<Texts, std::string>>{
           {{""}, "is not a peer id"},
           {{"x"}, "is not a peer id"},
           {{"0-3", "20"}, "names peer 20, and run.peers = 16"},
           {{"0-3", ": 0-3"}, "does not begin with the number of a round"},
           {{"0-3", "x: 0-3"}, "does not begin with the number of a round"},
           {{"0-3", "-1: 0-4"}, "does not begin with the number of a round"},
           {{"0-3", "99999999999999999999: 0-4"}, "does not begin with the number of a round"},
           {{"0-3", "20:"}, "names no peer"},
           {{"0-3", "20: 0-16"}, "ids are 0 to 15"},
           {{"0-3", "20: 0,0"}, "names peer 0 twice"},
           {{"5: 0-3"}, "the first entry says which peers take part from round 0 on"},
           {{"0-3", "20: 0-4", "20: 0-5"}, "the rounds ascend"},
           {{"0-3", "20: 0-4", "10: 0-5"}, "the rounds ascend"},
           {{"0-3", "20: 0,1,2,3"}, "the same peers take part as before"},
           {{"0-3", "20: 4-7"}, "no peer takes part both before round 20 and from then on"}}) {
    CAPTURE(part);
    const auto read = Participants::parse(texts, 16, "run.participants");
    REQUIRE_FALSE(read.ok());
    CHECK(read.error().kind == ErrorKind::invalid);
    CHECK(read.error().message.starts_with("run.participants: "));
    CHECK(read.error().message.find(part) != std::string::npos);
  }
}

TEST_CASE("with each change the topology is made anew, and those that take no part are alone") {
  for (const TopologyKind& kind : kinds::catalog()) {
    if (kind.needs_values) continue;
    CAPTURE(kind.name);
    const Texts texts{"1,3,6,7", "9: 0-15", "20: 0,1,3-6,8,9"};
    const auto made = make_schedule(request(kind.name, texts));
    if (!made.ok()) {  // some are not built for every number of peers
      CHECK(made.error().message.starts_with("run.participants: "));
      continue;
    }
    const MixingSchedule& changing = **made;
    CHECK(changing.peers() == 16);
    CHECK(changing.period() == 0);
    CHECK(changing.lattice().empty());
    const auto changes = changing.participants().changes();
    for (std::size_t k = 0; k < changes.size(); ++k) {
      const std::vector<int>& ids = changes[k].peers;
      const auto own =
          make_schedule(ScheduleRequest{kind.name, {}, {}, {static_cast<int>(ids.size()), 5}, {}});
      REQUIRE(own.ok());
      CHECK(changing.parts()[k]->hash() == (*own)->hash());
      const Round end = k + 1 < changes.size() ? changes[k + 1].first : changes[k].first + 9;
      for (Round t = changes[k].first; t < end; ++t) {
        const auto w = changing.at(t), part = (*own)->at(t - changes[k].first);
        REQUIRE(w->peers() == 16);
        for (int i = 0; i < 16; ++i)
          for (int j = 0; j < 16; ++j) {
            const auto a = std::ranges::lower_bound(ids, i), b = std::ranges::lower_bound(ids, j);
            const bool both = a != ids.end() && *a == i && b != ids.end() && *b == j;
            const double due = both ? entry(*part, static_cast<int>(a - ids.begin()),
                                            static_cast<int>(b - ids.begin()))
                                    : (i == j ? 1 : 0);
            REQUIRE(entry(*w, i, j) == due);
          }
      }
    }
    bool undirected = true;
    for (const MixingSchedule* part : changing.parts())
      undirected = undirected && is_undirected(*part);
    CHECK(is_undirected(changing) == undirected);
  }
}

TEST_CASE("a schedule's hash tells other participants, rounds and topologies apart") {
  const std::string hash = schedule("ring", {"0-3", "20: 0-15"})->hash();
  CHECK(hash == schedule("ring", {"0-3", "20: 0-15"})->hash());
  for (const Texts& other :
       {Texts{"0-3", "21: 0-15"}, Texts{"1-4", "20: 0-15"}, Texts{"0-3"}, Texts{"0-3", "20: 0-14"}})
    CHECK(hash != schedule("ring", other)->hash());
  CHECK(hash != schedule("complete", {"0-3", "20: 0-15"})->hash());
  CHECK(hash != schedule("ring", {})->hash());
}

TEST_CASE("a topology that cannot be built for a part says for which") {
  const auto made = make_schedule(request("hypercube", {"0-3", "20: 0-4"}));
  REQUIRE_FALSE(made.ok());
  CHECK(made.error().message.starts_with("run.participants: 5 peers take part from round 20 on: "));
}

TEST_CASE("the rounds of a changing schedule that are kept are those of the schedule") {
  const auto changing = schedule("random_matching", {"0-7", "30: 0-15"});
  const RecentRounds recent(*changing);
  CHECK(recent.participants().changes().size() == 2);
  CHECK(recent.parts() == changing->parts());
  for (const Round t : {Round{0}, Round{29}, Round{30}, Round{29}, Round{31}})
    for (int i = 0; i < 16; ++i)
      for (int j = 0; j < 16; ++j)
        CHECK(entry(*recent.at(t), i, j) == entry(*changing->at(t), i, j));
}

namespace {

ScheduleRequest open_request(const std::string& kind, const Texts& texts, int peers) {
  ScheduleRequest open = request(kind, texts, peers);
  open.open = true;
  return open;
}

}  // namespace

TEST_CASE("an open run begins with its participants, and each copy takes changes of its own") {
  const auto made = make_schedule(open_request("base", {"0-3"}, 12));
  REQUIRE(made.ok());
  const MixingSchedule& shared = **made;
  CHECK(shared.participants().is_open());
  CHECK_FALSE(shared.participants().are_all());
  const auto copy = shared.copy_if_open();
  REQUIRE(copy != nullptr);
  const RecentRounds recent(*copy);
  CHECK(entry(*recent.at(30), 0, 7) == 0);
  copy->set_changes({{30, {0, 7}}});
  CHECK(copy->hash() == shared.hash());
  CHECK(shared.participants().changes().size() == 1);
  CHECK(entry(*recent.at(29), 0, 7) == 0);
  CHECK(entry(*recent.at(30), 0, 7) == 0.5);  // the round is not kept from before
  CHECK(entry(*recent.at(30), 3, 3) == 1);
  CHECK(schedule("base", {"0-3"}, 12)->copy_if_open() == nullptr);
}

TEST_CASE("an open run's rounds keep their phase, whenever the change was") {
  const auto copy = make_schedule(open_request("base", {"0-3"}, 12)).value()->copy_if_open();
  const auto own = make_schedule(ScheduleRequest{"base", {}, {}, {11, 5}, {}}).value();
  CHECK(copy->longest_period() >= own->period());
  std::vector<int> all;
  for (int i = 0; i < 11; ++i) all.push_back(i);
  for (const Round first : {Round{10}, Round{11}}) {
    copy->set_changes({{first, all}});
    for (Round t = first; t < first + 10; ++t)
      for (int i = 0; i < 11; ++i)
        for (int j = 0; j < 11; ++j) REQUIRE(entry(*copy->at(t), i, j) == entry(*own->at(t), i, j));
  }
}

TEST_CASE("an open run whose topology does not exist for each number of peers says for which") {
  const auto error = [](const std::string& kind, const Texts& texts, int peers) {
    return make_schedule(open_request(kind, texts, peers)).error().message;
  };
  CHECK(error("hypercube", {"0-3"}, 8)
            .starts_with("run.open: the topology has to exist for each number of peers up to "
                         "run.peers, and for 3: "));
  CHECK(error("ring", {"0-3", "9: 0-7"}, 8).starts_with("run.participants: peers of an open run"));
  CHECK(error("ring", {}, kMostOpenPeers + 1).starts_with("run.open: an open run has 256 peers"));
}
