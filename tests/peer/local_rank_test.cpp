// The local rank of a process, from launchers and addresses, and the GPUs that it uses.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>

#include "peer/setup/local_rank.hpp"

using namespace gossamer;
using namespace gossamer::peer;

namespace {

using Variables = std::map<std::string, std::string>;
using Rank = std::tuple<int, int, int>;

Rank local_rank(const std::vector<int>& ids, int peers, const Variables& variables = {},
                std::vector<std::string> addresses = {}) {
  net::NetOptions net;
  net.peers = std::move(addresses);
  const LocalRank found = find_local_rank(ids, peers, net, [&](const char* name) {
    const auto variable = variables.find(name);
    return variable == variables.end() ? nullptr : variable->second.c_str();
  });
  return {found.rank, found.processes, static_cast<int>(found.hosted.size())};
}

std::vector<int> first_gpus(int count) {
  std::vector<int> gpus(static_cast<std::size_t>(count));
  std::iota(gpus.begin(), gpus.end(), 0);
  return gpus;
}

}  // namespace

TEST_CASE("local rank from the environment of launchers") {
  CHECK(local_rank({5}, 8, {{"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "4"}}) == Rank(1, 4, 1));
  CHECK(local_rank({5}, 8, {{"SLURM_LOCALID", "1"}, {"SLURM_NTASKS_PER_NODE", "2"}}) ==
        Rank(1, 2, 1));
  CHECK(local_rank({5}, 8,
                   {{"OMPI_COMM_WORLD_LOCAL_RANK", "3"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}}) ==
        Rank(3, 4, 1));
  CHECK(local_rank({5}, 8, {{"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "1"}}) == Rank(0, 1, 1));
  CHECK(local_rank({4, 5}, 8, {{"LOCAL_RANK", "x"}, {"SLURM_LOCALID", "0"}}) ==
        Rank(0, 0, 2));  // the number is not set
}

TEST_CASE("local rank from addresses, and without any information") {
  const std::vector<std::string> addresses{"a:1", "a:1", "b:1", "a:2", "a:2", "b:2"};
  CHECK(local_rank({0, 1}, 6, {}, addresses) == Rank(0, 2, 2));
  CHECK(local_rank({3, 4}, 6, {}, addresses) == Rank(1, 2, 2));
  CHECK(local_rank({2}, 6, {}, addresses) == Rank(0, 2, 1));
  CHECK(local_rank({5}, 6, {{"LOCAL_RANK", "0"}}, addresses) == Rank(1, 2, 1));
  CHECK(local_rank({5}, 6, {{"LOCAL_RANK", "2"}, {"LOCAL_WORLD_SIZE", "3"}}, addresses) ==
        Rank(2, 3, 1));
  CHECK(local_rank({4, 5}, 8) == Rank(2, 0, 2));
  CHECK(local_rank({0, 1, 2}, 3) == Rank(0, 1, 3));
  CHECK(local_rank({9}, 6, {}, addresses) == Rank(9, 0, 1));  // an id out of range is refused later
}

TEST_CASE("processes share GPUs evenly, each has a contiguous block, and all GPUs are used") {
  for (int gpus = 1; gpus <= 8; ++gpus)
    for (int processes = 1; processes <= 10; ++processes) {
      CAPTURE(gpus);
      CAPTURE(processes);
      std::multiset<int> taken;
      std::size_t least = 9, most = 0;
      for (int rank = 0; rank < processes; ++rank) {
        const std::vector<int> its =
            gpus_of_process({.rank = rank, .processes = processes}, first_gpus(gpus));
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

TEST_CASE(
    "at most one GPU per node; one GPU if the number of processes is unknown; ranks out of range") {
  CHECK(gpus_of_process({.hosted = {0, 1}}, first_gpus(4)) == std::vector<int>{0, 1});
  CHECK(gpus_of_process({.rank = 1, .processes = 2, .hosted = {0}}, first_gpus(4)) ==
        std::vector<int>{2});
  CHECK(gpus_of_process({.rank = 5, .processes = 0, .hosted = {0, 1, 2, 3, 4, 5, 6, 7, 8}},
                        first_gpus(4)) == std::vector<int>{1});
  CHECK(gpus_of_process({.rank = 5, .processes = 2}, first_gpus(4)) == std::vector<int>{2, 3});
  CHECK(gpus_of_process({}, {1, 3, 4}) == std::vector<int>{1, 3, 4});
}
