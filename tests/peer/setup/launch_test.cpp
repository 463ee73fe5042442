// What `gossamer launch` starts where. tests/python/test_launch.py starts it.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "peer/launch/launch_plan.hpp"

namespace gossamer::peer {
namespace {

std::string refusal_of(const std::string& text) {
  const auto hosts = parse_hosts(text, "hosts.txt");
  return hosts.ok() ? "accepted" : hosts.error().message;
}

LaunchRequest request_for(const std::string& hosts, int nodes) {
  LaunchRequest request;
  request.hosts = *parse_hosts(hosts, "hosts.txt");
  request.nodes = nodes;
  request.ssh = {"ssh", "-q"};
  request.directory = "/data/my run";
  request.program = "/opt/gossamer";
  request.arguments = {"run.toml", "--set", "run.name=it's"};
  return request;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a host file: names, slots, addresses and comments") {
  const auto hosts = parse_hosts(
      "# two racks\nnode1\n\n  alice@node2\tslots=2 # fast\nnode3 slots=4 address=10.0.0.7\r\n"
      "127_x",
      "hosts.txt");
  REQUIRE(hosts.ok());
  CHECK(*hosts == std::vector<LaunchHost>{{"node1", "node1", 1},
                                          {"alice@node2", "node2", 2},
                                          {"node3", "10.0.0.7", 4},
                                          {"127_x", "127_x", 1}});
}

TEST_CASE("a host file: IPv6 addresses, and the mark with which some editors begin a file") {
  const auto hosts = parse_hosts("\xEF\xBB\xBFnode1 address=[fd00::1]\nnode2 address=fd00::2", "");
  REQUIRE(hosts.ok());
  CHECK(*hosts == std::vector<LaunchHost>{{"node1", "fd00::1", 1}, {"node2", "fd00::2", 1}});
  LaunchRequest request = request_for("n1 address=[fd00::1] slots=2\nn2\n", 3);
  request.port = 7000;
  const auto planned = plan_launch(request);
  REQUIRE(planned.ok());
  CHECK(has((*planned)[1].command[4], "net.peers=[fd00::1]:7000,[fd00::1]:7001,n2:7000"));
  CHECK(has((*planned)[1].command[4], "net.listen=[::]:7001"));
  CHECK(has((*planned)[2].command[4], "net.listen=0.0.0.0:7000"));
  request.listen = "192.168.7.1";
  CHECK(has(plan_launch(request).value()[1].command[4], "net.listen=192.168.7.1:7001"));
}

TEST_CASE("a host file whose lines would be options, or commands, is refused") {
  CHECK(refusal_of("-oProxyCommand=reboot") ==
        "hosts.txt:1: '-oProxyCommand=reboot' is no host; write [user@]name, then slots=N for "
        "several processes, and address=NUMBER for the address that the peers call");
  for (const char* name : {"@", "a@", "@a", "a@b@c", "::1", "[::1]", "node1:22", "a;reboot",
                           "$(reboot)", "a'b", "`id`", "a|b", "a\\b", "a\x01", "ä"}) {
    CAPTURE(name);
    CHECK(has(refusal_of(std::string("node1\n") + name), "hosts.txt:2: '"));
  }
  for (const char* address :
       {"-oX", "[-oX]", "[]", "[::1", "::1]", ":", "1:2", "a;b", "[::1]:7000"})
    CHECK(has(refusal_of(std::string("node1 address=") + address),
              "neither slots=N nor address=NAME"));
  CHECK(has(refusal_of("node1 node2"), "hosts.txt:1: 'node2' is neither"));
  for (const char* slots : {"slots=", "slots=0", "slots=-1", "slots=2x", "slots=65536",
                            "slots=99999999999999999999", "slots=1.5"}) {
    CAPTURE(slots);
    CHECK(has(refusal_of(std::string("node1 ") + slots), "is not slots=1 to slots=65535"));
  }
  CHECK(refusal_of("# none\n") == "hosts.txt: there is no host in it; write one a line");
  CHECK(has(refusal_of("node1 slots=2 slots=3"), "hosts.txt:1: 'slots' is there twice"));
  CHECK(has(refusal_of("node1\nlocalhost\n"), "other machines cannot reach localhost"));
  CHECK(has(refusal_of("node1\nme@127.0.0.1\n"), "other machines cannot reach 127.0.0.1"));
  CHECK(has(refusal_of("localhost\n127.0.0.1\n"), "other machines cannot reach localhost"));
  CHECK(refusal_of("localhost slots=2\nlocalhost") == "accepted");
}

TEST_CASE("processes host consecutive ids, and slots of a machine have ports in turn") {
  LaunchRequest request = request_for("n1 slots=2\nbob@n2 address=10.0.0.2\nn1\n", 10);
  request.port = 7000;
  const auto planned = plan_launch(request);
  REQUIRE(planned.ok());
  std::vector<std::string> ids, hosts;
  for (const PlannedProcess& process : *planned) {
    ids.push_back(process.ids);
    hosts.push_back(process.host);
    CHECK(process.command.size() == 5);
    CHECK(process.command[0] == "ssh");
    CHECK(process.command[1] == "-q");
    CHECK(process.command[2] == "--");
    CHECK(process.command[3] == process.host);
    CHECK(has(process.command[4],
              "net.peers=n1:7000,n1:7000,n1:7001,n1:7001,n1:7001,10.0.0.2:7000,10.0.0.2:7000,"
              "n1:7002,n1:7002,n1:7002"));
  }
  CHECK(ids == std::vector<std::string>{"0-1", "2-4", "5-6", "7-9"});
  CHECK(hosts == std::vector<std::string>{"n1", "n1", "bob@n2", "n1"});
  const std::string &second = (*planned)[1].command[4], &third = (*planned)[2].command[4],
                    &last = (*planned)[3].command[4];
  CHECK(has(second, "net.listen=0.0.0.0:7001"));
  CHECK(has(second, "GOSSAMER_RANK=1 GOSSAMER_SIZE=4 GOSSAMER_LOCAL_RANK=1 GOSSAMER_LOCAL_SIZE=3"));
  CHECK(has(third, "GOSSAMER_RANK=2 GOSSAMER_SIZE=4 GOSSAMER_LOCAL_RANK=0 GOSSAMER_LOCAL_SIZE=1"));
  CHECK(has(last, "net.listen=0.0.0.0:7002"));
  CHECK_FALSE(has((*planned)[0].command[4], "--quiet"));  // the first one shows the progress
  CHECK(has(second, "--quiet"));
}

TEST_CASE("as many processes as workers of a cut model are one each, with two ports") {
  LaunchRequest request = request_for("n1 slots=3\nn2 slots=3\n", 2);
  request.workers = 3;
  request.port = 7000;
  const auto planned = plan_launch(request);
  REQUIRE(planned.ok());
  std::vector<std::string> names;
  for (const PlannedProcess& process : *planned) {
    names.push_back(process.ids);
    CHECK(has(process.command[4], "net.peers=n1:7000,n1:7002,n1:7004,n2:7000,n2:7002,n2:7004"));
  }
  CHECK(names == std::vector<std::string>{"0.0", "0.1", "0.2", "1.0", "1.1", "1.2"});
  CHECK(has((*planned)[5].command[4], "net.listen=0.0.0.0:7004"));
  CHECK(has((*planned)[5].command[4], "GOSSAMER_RANK=5 GOSSAMER_SIZE=6"));
  request.port = 65531;  // the last worker of a machine needs 65,535 and the port after
  CHECK(has(plan_launch(request).error().message, "slot 2 of n1 would listen on port 65535"));
  for (const char* hosts : {"n1 slots=3", "n1 slots=7"}) {
    LaunchRequest other = request_for(hosts, 2);
    other.workers = 3;
    CHECK(has(plan_launch(other).error().message,
              "slots: give 6, and each is one worker of the 2 replicas of 3, or 2 at most"));
  }
  LaunchRequest whole = request_for("n1 slots=2", 2);
  whole.workers = 3;
  CHECK(plan_launch(whole).value()[1].ids == "1");
}

TEST_CASE("without a port, and on localhost, processes are started as they are") {
  const auto planned = plan_launch(request_for("localhost slots=2", 2));
  REQUIRE(planned.ok());
  for (const PlannedProcess& process : *planned) {
    REQUIRE(process.command.size() == 3);
    CHECK(process.command[0] == "sh");
    CHECK_FALSE(has(process.command[2], "net.peers"));
    CHECK(has(process.command[2], "cd '/data/my run' || exit 3"));
    CHECK(has(process.command[2], "'/opt/gossamer' 'peer' 'run.toml' '--set' 'run.name=it'\\''s'"));
  }
  CHECK((*planned)[1].ids == "1");
}

TEST_CASE("a network that does not fit its hosts is refused") {
  const auto many = plan_launch(request_for("n1 slots=5", 4));
  REQUIRE_FALSE(many.ok());
  CHECK(many.error().message ==
        "the hosts have 5 slots, and the network has 4 nodes (peers and servers): remove 1, or set "
        "run.peers");
  LaunchRequest high = request_for("n1 slots=4", 4);
  high.port = 65534;
  const auto port = plan_launch(high);
  REQUIRE_FALSE(port.ok());
  CHECK(has(port.error().message, "slot 2 of n1 would listen on port 65536"));
}

}  // namespace gossamer::peer
