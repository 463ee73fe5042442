// Which worker a process is, and where the workers of its part and of its replica are called.
#include "peer/replica/worker_place.hpp"

#include <map>

#include "peer/replica/worker_addresses.hpp"
#include "tests/peer/test_util.hpp"

namespace gossamer::peer::testing {
namespace {

using Variables = std::map<std::string, std::string>;

/// Two replicas of three workers.
Config cut(const Overrides& more = {}) {
  return configured(
      Overrides{"model.kind=mlp", "model.hidden=[16,16]", "run.peers=2", "split.layers=3"} + more);
}

/// "worker 1.0", "whole peers", or the error.
std::string place(const Config& config, const std::string& option, const Variables& variables) {
  const auto found = find_worker(config, option, "--id", [&](const char* name) {
    const auto variable = variables.find(name);
    return variable == variables.end() ? nullptr : variable->second.c_str();
  });
  if (!found.ok()) return found.error().message;
  return *found ? "worker " + (*found)->name() : "whole peers";
}

std::string refusal(const Config& config) {
  const Status status = check_worker(config, {1, 2});
  return status.ok() ? "" : status.error().message;
}

std::string of_ports(int first, int workers) {
  std::string list = "net.peers=[";
  for (int k = 0; k < workers; ++k)
    list += fmt::format("{}\"127.0.0.1:{}\"", k > 0 ? "," : "", first + 2 * k);
  return list + "]";
}

TEST_CASE("a worker is named by the option, by GOSSAMER_ID, or by its rank among all workers") {
  const Config config = cut();
  CHECK(place(config, "1.2", {}) == "worker 1.2");
  CHECK(place(config, "1", {{"GOSSAMER_ID", "0.0"}}) == "whole peers");
  CHECK(place(config, "", {{"GOSSAMER_ID", "0.1"}, {"RANK", "5"}, {"WORLD_SIZE", "6"}}) ==
        "worker 0.1");
  const std::vector<std::string> expected{"0.0", "0.1", "0.2", "1.0", "1.1", "1.2"};
  for (const auto& [rank, size] : {std::pair("RANK", "WORLD_SIZE"),
                                   {"GOSSAMER_RANK", "GOSSAMER_SIZE"},
                                   {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                   {"PMI_RANK", "PMI_SIZE"},
                                   {"SLURM_PROCID", "SLURM_NTASKS"}})
    for (std::size_t k = 0; k < expected.size(); ++k)
      CHECK(place(config, "", {{rank, std::to_string(k)}, {size, "6"}}) == "worker " + expected[k]);
}

TEST_CASE("no more processes than replicas hold whole ones; other numbers are refused") {
  const auto of_size = [](const Config& config, const char* size) {
    return place(config, "", {{"RANK", "0"}, {"WORLD_SIZE", size}});
  };
  CHECK(of_size(cut(), "1") == "whole peers");
  CHECK(of_size(cut(), "2") == "whole peers");
  for (const char* size : {"3", "5", "7", "12"})
    CHECK(of_size(cut(), size) ==
          fmt::format("WORLD_SIZE: {} processes were started: start 6, and each is one worker of "
                      "the 2 replicas of 3, or 2 at most, and each holds whole replicas",
                      size));
  CHECK(of_size(cut({"split.layers=1"}), "6") == "whole peers");  // too many, as find_ids says
  CHECK(place(cut(), "", {{"RANK", "6"}, {"WORLD_SIZE", "6"}}) ==
        "RANK: '6' is no rank among the '6' processes of WORLD_SIZE");
  CHECK(place(cut(), "", {{"RANK", "1"}}) == "whole peers");
  CHECK(place(cut(), "", {}) == "whole peers");
  for (const char* id : {"1.", ".1", "1.2.3", "a.b", "0-1.2", "1.-2", "1.99999999999"})
    CHECK(place(cut(), id, {}).find("names no worker") != std::string::npos);
}

TEST_CASE("workers with addresses: those of a part, and the ports after those of a replica") {
  const Config config = cut({of_ports(7000, 6)});
  REQUIRE(refusal(config) == "");
  using Addresses = std::vector<std::string>;
  CHECK(part_config(config, {1, 2}).net.peers == Addresses{"127.0.0.1:7004", "127.0.0.1:7010"});
  CHECK(part_config(config, {0, 0}).net.peers == Addresses{"127.0.0.1:7000", "127.0.0.1:7006"});
  CHECK(replica_config(config, {1, 2}).net.peers ==
        Addresses{"127.0.0.1:7007", "127.0.0.1:7009", "127.0.0.1:7011"});
  const Config pattern = cut({"net.peers=[\"w{peer}.local:7000\"]", "net.listen=0.0.0.0:7000"});
  REQUIRE(refusal(pattern) == "");
  CHECK(part_config(pattern, {1, 1}).net.peers == Addresses{"w1.local:7000", "w4.local:7000"});
  CHECK(part_config(pattern, {1, 1}).net.listen == "0.0.0.0:7000");
  CHECK(replica_config(pattern, {1, 1}).net.peers ==
        Addresses{"w3.local:7001", "w4.local:7001", "w5.local:7001"});
  CHECK(replica_config(pattern, {1, 1}).net.listen == "0.0.0.0:7001");
  const Config folder = cut({"net.rendezvous=meet", "net.listen=127.0.0.1:0"});
  REQUIRE(refusal(folder) == "");
  CHECK(replica_config(folder, {1, 1}).net.listen == "127.0.0.1:0");
  CHECK(replica_config(folder, {1, 1}).net.peers.empty());
}

TEST_CASE("a worker that serves no page says which one does") {
  const Config config = cut({"net.http=127.0.0.1:8080"});
  CHECK(page_note(config, {1, 2}) ==
        "net.http: worker 1.2 serves no page; those of part 0 do, such as worker 1.0");
  CHECK(part_config(config, {1, 2}).net.http == "");
  CHECK(page_note(config, {1, 0}) == "");
  CHECK(part_config(config, {1, 0}).net.http == "127.0.0.1:8080");
  CHECK(page_note(cut(), {1, 2}) == "");
}

TEST_CASE("workers with addresses: each one has its own key") {
  Config config = cut({of_ports(7000, 6)});
  config.net.keys = {"00", "01", "02", "10", "11", "12"};
  CHECK(part_config(config, {1, 2}).net.keys == std::vector<std::string>{"02", "12"});
  CHECK(replica_config(config, {1, 2}).net.keys == std::vector<std::string>{"10", "11", "12"});
}

TEST_CASE("workers with addresses: what does not reach each of them is refused") {
  const auto refused = [](const Overrides& settings, const std::string& why) {
    const std::string message = refusal(cut(settings));
    CAPTURE(message);
    CHECK(message.starts_with("worker 1.2: " + why));
    CHECK(message.ends_with("; or give --id 1, and the process holds the whole replica"));
  };
  refused({},
          "net.peers: 0 addresses for 6 workers (2 replicas of 3): give one for each, in the "
          "order 0.0, 0.1, and so on, or set net.rendezvous");
  refused({of_ports(7000, 2), "net.rendezvous=meet"}, "net.peers: 2 addresses for 6 workers");
  refused({"net.peers=[\"a:1\",\"a:2\",\"b:1\",\"b:3\",\"b:5\",\"b:7\"]"},
          "net.peers[1]: worker 0.1 listens on its port and on the next, and so does worker "
          "0.0, so both would listen on a:2");
  refused({"net.peers=[\"w{peer}:65535\"]"}, "net.peers[0]: a worker listens on the port after");
  refused({"net.peers=[\"w{peer}\"]"}, "net.peers[0]: ");
  refused({"net.peers=[\"w{peer}:0\"]"}, "net.peers[0]: port 0 cannot be called");
  refused({of_ports(7000, 6), "net.keys=[\"00\",\"01\"]"}, "net.keys: 2 keys for 6 addresses");
  refused({"net.rendezvous=meet", "net.keys=[\"00\",\"01\"]"}, "net.keys: they are in the order");
  refused({"net.rendezvous=meet", "net.listen=0.0.0.0:65535"}, "net.listen: a worker listens on");
  refused({"net.seeds=[\"10.0.0.1:7000\"]"}, "net.seeds: workers find each other by a folder");
  refused({"net.rendezvous=meet", "net.advertise=10.0.0.1:7000"}, "net.advertise: workers find");
  const Folder folder;
  const std::string members = written(folder.path / "members.toml",
                                      "[[member]]\nid = 0\nkey = "
                                      "\"BsbXpDLWVbafdy30YQFD8n67ZTSfXRECe/3uhxSHlXI=\"\naddress = "
                                      "\"10.0.0.1:7000\"\n");
  refused({"net.rendezvous=meet", "net.members=" + members}, "net.members: ");
}

}  // namespace
}  // namespace gossamer::peer::testing
