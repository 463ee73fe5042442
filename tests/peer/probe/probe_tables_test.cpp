// The tables of a probe: what is written is what sim.probe reads, and nothing else is.
#include "peer/storage/probe_tables.hpp"

#include "gossip/links/network_model.hpp"
#include "peer/prediction/round_time.hpp"
#include "peer/setup/virtual_network.hpp"
#include "tests/peer/test_util.hpp"
#include "tests/text_test_util.hpp"

using namespace gossamer;
using namespace gossamer::peer;
using namespace gossamer::peer::testing;

namespace {

ProbeTables two_nodes() {
  ProbeTables tables;
  tables.latencies_ms = gossip::LinkTable(2, {0, 12.5, 12.5, 0});
  tables.jitters_ms = gossip::LinkTable(2, {0, 0.75, 0.75, 0});
  tables.bandwidths_mbit_s = gossip::LinkTable(2, {0, 80, 40.0625, 0});
  tables.nodes = {{3, 0.25, 100, 200}, {6, 0, 50, 0}};
  return tables;
}

/// Every word is in the message.
void check_words(const std::string& message, const std::vector<std::string>& words) {
  for (const std::string& word : words) CHECK(contains(message, word));
}

Error refused_probe(const Overrides& overrides) {
  const auto setup = make_setup(configured(overrides));
  REQUIRE_FALSE(setup.ok());
  return setup.error();
}

}  // namespace

TEST_CASE("the tables that a probe writes are read back") {
  const Folder folder;
  const fs::path probe = folder.path / "deep" / "probe";
  const ProbeTables tables = two_nodes();
  REQUIRE(write_probe_tables(probe, tables).ok());
  REQUIRE(write_probe_tables(probe, tables).ok());  // replaced
  const auto read = read_probe_tables(probe, 2);
  REQUIRE_MESSAGE(read.ok(), (read.ok() ? "" : read.error().message));
  CHECK(read->latencies_ms.values() == tables.latencies_ms.values());
  CHECK(read->jitters_ms.values() == tables.jitters_ms.values());
  CHECK(read->bandwidths_mbit_s.values() == tables.bandwidths_mbit_s.values());
  CHECK(read->nodes[1].step_ms == 6);
  CHECK(read->nodes[0].step_spread == 0.25);
  CHECK(read->nodes[0].uplink_mbit_s == 100);
  CHECK(read->nodes[1].downlink_mbit_s == 0);
}

TEST_CASE("sim.probe gives every link and every node its own properties") {
  const Folder folder;
  REQUIRE(write_probe_tables(folder.path, two_nodes()).ok());
  const Setup setup = set_up({"run.peers=2", "sim.probe=" + folder.path.string()});
  const gossip::LinkModel link = setup.network.link(1, 0);
  CHECK(link.latency == gossip::from_milliseconds(12.5));
  CHECK(link.jitter == gossip::from_milliseconds(0.75));
  CHECK(link.bytes_per_second == 40.0625e6 / 8);
  CHECK(node_model(setup, 0).downlink_bytes_per_second == 200e6 / 8);
  CHECK(node_model(setup, 1).downlink_bytes_per_second == 0);
  CHECK(least_uplink_mbit_s(setup) == 50);
  CHECK(least_downlink_mbit_s(setup) == 200);
  CHECK_FALSE(round_time(setup));  // links differ

  gossip::TrainRequest request;
  request.peer = request.shard_of = 1;
  request.steps = 4;
  CHECK(step_times(setup).of(request) == gossip::from_milliseconds(24));
}

TEST_CASE("a run with sim.probe takes the time of its peers and links") {
  const Folder folder;
  REQUIRE(write_probe_tables(folder.path / "probe", two_nodes()).ok());
  const Left left = run_in(folder.path / "run", {"run.peers=2", "run.rounds=10", "log.every=10",
                                                 "sim.probe=" + (folder.path / "probe").string()});
  // Two rounds take a step of each peer, 9 ms, and a message each way: 25 ms of latency, up to 1.5
  // ms of jitter, and 2.7 kB at 80 and at 40 Mbit/s, 0.8 ms.
  const double seconds = left.summary["virtual_seconds"].get<double>();
  CHECK(seconds > 5 * 0.0347);
  CHECK(seconds < 5 * 0.0365);
}

TEST_CASE("other keys of the section and other networks are refused") {
  const Folder folder;
  REQUIRE(write_probe_tables(folder.path, two_nodes()).ok());
  const std::string probe = "sim.probe=" + folder.path.string();
  for (const char* key : {"latency_ms=3", "jitter_ms=1", "uplink_mbit_s=5", "compute_ms=2",
                          "slow_peers=1", "bandwidth_file=x"}) {
    const Error error = refused_probe({"run.peers=2", probe, std::string("sim.") + key});
    CHECK(error.kind == ErrorKind::invalid);
    check_words(error.message, {"sim.", "sim.probe", "set only one"});
  }
  const Error other = refused_probe({"run.peers=3", probe});
  CHECK(other.kind == ErrorKind::data);
  check_words(other.message, {"sim.probe", "latency.txt", "network of 2", "3"});
}

TEST_CASE("a damaged table is an error that names the file and the line") {
  const Folder folder;
  const std::string probe = "sim.probe=" + folder.path.string();
  check_words(refused_probe({"run.peers=2", probe}).message, {"sim.probe", "latency.txt"});
  struct TableDamage {
    const char *file, *text;
    std::vector<std::string> words;
  };
  const TableDamage damages[] = {
      {"nodes.txt", "1 0 5 5\n", {"nodes.txt", "network of 1"}},
      {"nodes.txt", "1 0 5 5\n1 0 5\n", {"nodes.txt:2", "3 numbers"}},
      {"nodes.txt", "1 0 5 5\n1 0 5 5 5\n", {"nodes.txt:2", "5 numbers"}},
      {"nodes.txt", "# x\n1 0 5 inf\n1 0 5 5\n", {"nodes.txt:2", "'inf'"}},
      {"nodes.txt", "1 0 5 nan\n1 0 5 5\n", {"nodes.txt:1", "'nan'"}},
      {"nodes.txt", "1 3 5 5\n1 0 5 5\n", {"nodes.txt:1", "'3'", "from 0 to 2"}},
      {"nodes.txt", "-1 0 5 5\n1 0 5 5\n", {"nodes.txt:1", "'-1'"}},
      {"nodes.txt", "", {"nodes.txt", "network of 0"}},
      {"jitter.txt", "0 1\n2\n", {"jitter.txt:2"}},
      {"bandwidth.txt", "0 1\n2 1e10\n", {"bandwidth.txt:2", "1e10"}},
  };
  for (const TableDamage& damage : damages) {
    REQUIRE(write_probe_tables(folder.path, two_nodes()).ok());
    written(folder.path / damage.file, damage.text);
    const Error error = refused_probe({"run.peers=2", probe});
    CHECK(error.kind == ErrorKind::data);
    check_words(error.message, damage.words);
  }
}
