// The ids and the local rank of a process, from launchers and addresses, and the GPUs that it uses.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>

#include "peer/config/config.hpp"
#include "peer/setup/hosted_ids.hpp"
#include "peer/setup/local_rank.hpp"
#include "peer/setup/setup.hpp"

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

/// The ids of the process, "0 1 2", or the error's message.
std::string ids(const std::string& option, int nodes, const Variables& variables) {
  const auto found = given_ids(option, "--id", nodes, [&](const char* name) {
    const auto variable = variables.find(name);
    return variable == variables.end() ? nullptr : variable->second.c_str();
  });
  if (!found.ok()) return found.error().message;
  if (found->empty()) return no_id("--id").message;
  return fmt::format("{}", fmt::join(*found, " "));
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

TEST_CASE("ids from the option, from GOSSAMER_ID, and from the rank of each launcher") {
  CHECK(ids("2,0", 4, {{"GOSSAMER_ID", "1"}}) == "0 2");
  CHECK(ids("", 4, {{"GOSSAMER_ID", "1-2"}, {"RANK", "3"}}) == "1 2");
  const std::pair<const char*, const char*> launchers[] = {
      {"RANK", "WORLD_SIZE"},
      {"SLURM_PROCID", "SLURM_NTASKS"},
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
      {"PMI_RANK", "PMI_SIZE"}};
  for (const auto& [rank, size] : launchers) {
    CAPTURE(rank);
    CHECK(ids("", 4, {{rank, "3"}, {size, "4"}}) == "3");
    CHECK(ids("", 4, {{rank, "3"}}) == "3");
    CHECK(ids("", 10, {{rank, "0"}, {size, "4"}}) == "0 1");
    CHECK(ids("", 10, {{rank, "1"}, {size, "4"}}) == "2 3 4");
    CHECK(ids("", 4, {{rank, "4"}, {size, "5"}}) ==
          fmt::format("{}: 5 processes were started, and the network has 4 nodes (peers and "
                      "servers): start 4, or set run.peers",
                      size));
    for (const char* wrong : {"4", "x", "-1", ""})
      CHECK(ids("", 4, {{rank, wrong}, {size, "4"}}) ==
            fmt::format("{}: '{}' is no rank among the '4' processes of {}", rank, wrong, size));
  }
  CHECK(ids("", 4, {}).find("--id") != std::string::npos);
  // mpirun in a job script of Slurm, whose own rank all processes inherit.
  const Variables in_a_job{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_LOCALID", "0"}};
  for (const char* mpi : {"OMPI_COMM_WORLD_", "PMI_"}) {
    Variables both = in_a_job;
    both[std::string(mpi) + "RANK"] = "3";
    both[std::string(mpi) + "SIZE"] = "4";
    CHECK(ids("", 4, both) == "3");
  }
  Variables local = in_a_job;
  local["OMPI_COMM_WORLD_LOCAL_RANK"] = "1";
  local["OMPI_COMM_WORLD_LOCAL_SIZE"] = "2";
  CHECK(local_rank({3}, 4, local) == Rank(1, 2, 1));
}

TEST_CASE("the processes of a launcher host every node once") {
  for (int nodes = 1; nodes <= 20; ++nodes)
    for (int size = 1; size <= nodes; ++size) {
      std::string all, expected;
      for (int rank = 0; rank < size; ++rank)
        all +=
            ids("", nodes, {{"RANK", std::to_string(rank)}, {"WORLD_SIZE", std::to_string(size)}}) +
            " ";
      for (int id = 0; id < nodes; ++id) expected += std::to_string(id) + " ";
      CHECK(all == expected);
    }
}

TEST_CASE("the number of nodes counts servers, and one node for centralized") {
  const auto count = [](const std::string& algorithm) {
    return *node_count(*load_config("", {"run.peers=6", "algorithm.kind=" + algorithm}));
  };
  CHECK(count("dpsgd") == 6);
  CHECK(count("server") == 7);
  CHECK(count("centralized") == 1);
}

TEST_CASE("one address with {peer} stands for all") {
  net::NetOptions net;
  net.peers = {"node-{peer}.rack{peer}:7000"};
  net::expand_addresses(net, 3);
  CHECK(net.peers ==
        std::vector<std::string>{"node-0.rack0:7000", "node-1.rack1:7000", "node-2.rack2:7000"});
  net.peers = {"a:1", "b{peer}:2"};
  net::expand_addresses(net, 2);
  CHECK(net.peers == std::vector<std::string>{"a:1", "b{peer}:2"});
  net.peers = {"a:1"};
  net::expand_addresses(net, 1);
  CHECK(net.peers == std::vector<std::string>{"a:1"});
}

TEST_CASE("the pages of processes that a launcher starts are served at ports of their own") {
  const auto http_of = [](const std::string& http, const Variables& variables,
                          std::vector<Override> more = {}) -> std::string {
    more.insert(more.end(), {"run.peers=8", "net.http=" + http});
    auto config = load_config("", more);
    REQUIRE(config.ok());
    const auto setup = make_network_setup(std::move(*config), {5}, [&](const char* name) {
      const auto variable = variables.find(name);
      return variable == variables.end() ? nullptr : variable->second.c_str();
    });
    return setup.ok() ? setup->config.net.http : setup.error().message;
  };
  const Variables second{{"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "4"}};
  CHECK(http_of("127.0.0.1:8080", second) == "127.0.0.1:8081");
  CHECK(http_of("127.0.0.1:8080", {}) == "127.0.0.1:8080");
  CHECK(http_of("127.0.0.1:8080", {}, {"net.peers=127.0.0.1:700{peer}"}) == "127.0.0.1:8080");
  // Slurm says how many there are with --ntasks-per-node alone.
  CHECK(http_of("127.0.0.1:8080", {{"SLURM_PROCID", "5"}, {"SLURM_LOCALID", "2"}}) ==
        "127.0.0.1:8082");
  CHECK(http_of("127.0.0.1:0", second) == "127.0.0.1:0");
  CHECK(http_of("127.0.0.1:65535", second).starts_with("net.http: process 1 of this machine"));
}
