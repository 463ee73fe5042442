// Where a process stands among those of its machine: launchers, addresses, and what of the GPUs is
// its share.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>

#include "peer/runtime/process_place.hpp"

using namespace gossamer;
using namespace gossamer::peer;

namespace {

using Variables = std::map<std::string, std::string>;
using Place = std::tuple<int, int, int>;

Place place(const std::vector<int>& ids, int peers, const Variables& variables = {},
            std::vector<std::string> addresses = {}) {
  net::NetOptions net;
  net.peers = std::move(addresses);
  const ProcessPlace found = process_place(ids, peers, net, [&](const char* name) {
    const auto variable = variables.find(name);
    return variable == variables.end() ? nullptr : variable->second.c_str();
  });
  return {found.process, found.processes, found.nodes};
}

std::vector<int> first_gpus(int count) {
  std::vector<int> gpus(static_cast<std::size_t>(count));
  std::iota(gpus.begin(), gpus.end(), 0);
  return gpus;
}

}  // namespace

TEST_CASE("place: what launchers say") {
  CHECK(place({5}, 8, {{"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "4"}}) == Place(1, 4, 1));
  CHECK(place({5}, 8, {{"SLURM_LOCALID", "1"}, {"SLURM_NTASKS_PER_NODE", "2"}}) == Place(1, 2, 1));
  CHECK(place({5}, 8, {{"OMPI_COMM_WORLD_LOCAL_RANK", "3"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}}) ==
        Place(3, 4, 1));
  CHECK(place({5}, 8, {{"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "1"}}) == Place(0, 1, 1));
  CHECK(place({4, 5}, 8, {{"LOCAL_RANK", "x"}, {"SLURM_LOCALID", "0"}}) ==
        Place(0, 0, 2));  // how many is not said
}

TEST_CASE("place: what addresses say, and what is done where nothing does") {
  const std::vector<std::string> addresses{"a:1", "a:1", "b:1", "a:2", "a:2", "b:2"};
  CHECK(place({0, 1}, 6, {}, addresses) == Place(0, 2, 2));
  CHECK(place({3, 4}, 6, {}, addresses) == Place(1, 2, 2));
  CHECK(place({2}, 6, {}, addresses) == Place(0, 2, 1));
  CHECK(place({5}, 6, {{"LOCAL_RANK", "0"}}, addresses) == Place(1, 2, 1));
  CHECK(place({5}, 6, {{"LOCAL_RANK", "2"}, {"LOCAL_WORLD_SIZE", "3"}}, addresses) ==
        Place(2, 3, 1));
  CHECK(place({4, 5}, 8) == Place(2, 0, 2));
  CHECK(place({0, 1, 2}, 3) == Place(0, 1, 3));
  CHECK(place({9}, 6, {}, addresses) == Place(9, 0, 1));  // a peer that there is not: refused later
}

TEST_CASE("place: processes share GPUs evenly, each in one block, and none is left over") {
  for (int gpus = 1; gpus <= 8; ++gpus)
    for (int processes = 1; processes <= 10; ++processes) {
      CAPTURE(gpus);
      CAPTURE(processes);
      std::multiset<int> taken;
      std::size_t least = 9, most = 0;
      for (int process = 0; process < processes; ++process) {
        const std::vector<int> its =
            gpus_of_process({.process = process, .processes = processes}, first_gpus(gpus));
        for (std::size_t i = 1; i < its.size(); ++i) CHECK(its[i] == its[i - 1] + 1);
        least = std::min(least, its.size());
        most = std::max(most, its.size());
        taken.insert(its.begin(), its.end());
      }
      CHECK(least >= 1);
      CHECK(most <= least + 1);
      std::size_t rarest = 11, oftenest = 0;
      for (int gpu = 0; gpu < gpus; ++gpu) {
        rarest = std::min(rarest, taken.count(gpu));
        oftenest = std::max(oftenest, taken.count(gpu));
      }
      CHECK(rarest >= 1);
      CHECK(oftenest <= rarest + 1);
    }
}

TEST_CASE("place: no more GPUs than nodes, one where it is not known, numbers that are not there") {
  CHECK(gpus_of_process({.nodes = 2}, first_gpus(4)) == std::vector<int>{0, 1});
  CHECK(gpus_of_process({.process = 1, .processes = 2, .nodes = 1}, first_gpus(4)) ==
        std::vector<int>{2});
  CHECK(gpus_of_process({.process = 5, .processes = 0, .nodes = 9}, first_gpus(4)) ==
        std::vector<int>{1});
  CHECK(gpus_of_process({.process = 5, .processes = 2}, first_gpus(4)) == std::vector<int>{2, 3});
  CHECK(gpus_of_process({}, {1, 3, 4}) == std::vector<int>{1, 3, 4});
}
