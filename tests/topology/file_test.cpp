// Graphs from files: what may stand in them, and what is said, with the line, where something may
// not.
#include <doctest/doctest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/topology/test_util.hpp"
#include "topology/graph_file.hpp"

using namespace gossamer::topology;
using namespace gossamer::topology::test;

namespace {

std::string edges_error(const std::string& text) {
  const auto graph = parse_edge_list(text, "g.edges", false);
  if (!graph.ok()) return graph.error().message;
  const auto rows = rows_of(*graph, "g.edges");
  return rows.ok() ? "" : rows.error().message;
}

std::string xml_error(const std::string& text) {
  const auto graph = parse_graphml(text, "g.graphml");
  return graph.ok() ? "" : graph.error().message;
}

/// A file in a folder of its own, gone with it.
struct File {
  std::filesystem::path path;
  File(const std::string& name, const std::string& text) {
    static int made = 0;
    const auto folder =
        std::filesystem::temp_directory_path() /
        ("gossamer-graph-" + std::to_string(::getpid()) + "-" + std::to_string(made++));
    std::filesystem::create_directories(folder);
    path = folder / name;
    std::ofstream(path) << text;
  }
  ~File() { std::filesystem::remove_all(path.parent_path()); }
  Network network(int peers) const {
    return test::network("file", peers).set("path", path.string());
  }
};

}  // namespace

TEST_CASE(
    "an edge list: the ring of five, with comments, blank lines, commas and Windows line ends") {
  const File file("ring.edges", "# a ring\n0 1\n\n1,2   # the second\r\n2\t3\r\n4 3\n4 0");
  CHECK(file.network(5).schedule()->hash() == network("ring", 5).schedule()->hash());
  CHECK(file.network(5).uniform().schedule()->hash() ==
        network("ring", 5).uniform().schedule()->hash());
  CHECK(file.network(6).refusal().find("has 5; n = 5 works") != std::string::npos);
  CHECK(file.network(5).weighed({"given", false}).refusal().find("prescribes no weights") !=
        std::string::npos);
}

TEST_CASE("weights in the list are W's, and W is checked as any other") {
  const File file("pair.txt", "0 1 0.25\n1 2 0.5\n");
  const auto schedule = file.network(3).schedule();
  Eigen::Matrix3d expected;
  expected << 0.75, 0.25, 0, 0.25, 0.25, 0.5, 0, 0.5, 0.5;
  CHECK(dense(*schedule->at(0)) == expected);
  CHECK(file.network(3).report().weights == "given");
  CHECK(file.network(3).weighed({"metropolis", false}).schedule()->hash() ==
        network("path", 3).schedule()->hash());
  CHECK(File("p.txt", "0 1 0.6\n1 2 0.6\n")
            .network(3)
            .refusal()
            .find("entries check failed: W[1][1]") != std::string::npos);
  CHECK(File("p.txt", "0 1\n2 3\n").network(4).refusal().find("joint connectivity") !=
        std::string::npos);
  CHECK(File("p.txt", "0 1\n1 3\n").network(4).refusal().find("joint connectivity") !=
        std::string::npos);  // 2 has no edge
}

TEST_CASE("directed lists: the first is an in-neighbour of the second") {
  const File circle("c.txt", "0 1\n1 2\n2 0\n");
  const auto schedule = circle.network(3).set("directed", true).schedule();
  REQUIRE(schedule->at(0)->in_neighbours(1).size() == 1);
  CHECK(schedule->at(0)->in_neighbours(1)[0].peer == 0);
  CHECK(File("c.txt", "0 1\n1 0\n1 2\n")
            .network(3)
            .set("directed", true)
            .refusal()
            .find("no weights for this directed") != std::string::npos);
  const File uneven("c.txt", "0 1 0.5\n1 0 0.4\n");
  CHECK(uneven.network(2).set("directed", true).refusal().find("column sum check failed") !=
        std::string::npos);
}

TEST_CASE("what is wrong in an edge list is said with its line") {
  CHECK(edges_error("0 1\n1\n") ==
        "g.edges:2: '1' is not an edge: write `from to`, or `from to weight`");
  CHECK(edges_error("0 1\n1 x\n") == "g.edges:2: 'x' is not a peer's number, 0 to 131071");
  CHECK(edges_error("0 -1\n") == "g.edges:1: '-1' is not a peer's number, 0 to 131071");
  CHECK(edges_error("0 99999999999999\n").find("is not a peer's number") != std::string::npos);
  CHECK(edges_error("0 1 0.5\n1 2\n") ==
        "g.edges:2: this edge has no weight, and those before it have one");
  CHECK(edges_error("0 1\n1 2 0.5\n") ==
        "g.edges:2: this edge has a weight, and those before it have none");
  CHECK(edges_error("0 1 a\n") == "g.edges:1: 'a' is not a weight");
  CHECK(edges_error("0 1 -0.5\n") == "g.edges:1: -0.5 is not a weight above 0 and up to 1");
  CHECK(edges_error("0 1 nan\n") == "g.edges:1: nan is not a weight above 0 and up to 1");
  CHECK(edges_error("# c\n1 1\n").starts_with("g.edges:2: peer 1 is its own neighbour"));
  CHECK(edges_error("0 1\n1 2\n1 0\n") ==
        "g.edges:3: peer 0 has peer 1 as an in-neighbour already, by line 1");
  CHECK(edges_error("\n# nothing\n") == "g.edges:2: no edge in the whole file");
  CHECK(edges_error("") == "g.edges:1: no edge in the whole file");
  CHECK(network("file", 4).refusal() ==
        "topology.path: topology file needs the path of an edge list or a GraphML file");
  CHECK(network("file", 4).set("path", std::string("/nowhere/g")).refusal() ==
        "cannot read /nowhere/g: No such file or directory");
}

TEST_CASE(
    "GraphML: node ids as numbers, as n0…, as names; weights by key; comments; direction by graph "
    "and by edge") {
  const std::string head =
      "<?xml version='1.0'?>\n<!-- <node id=\"9\"/> -->\n<graphml>\n"
      "<key id=\"d0\" for=\"edge\" attr.name=\"weight\" attr.type=\"double\"/>\n";
  const File path("p.graphml", head +
                                   "<graph edgedefault=\"undirected\">\n<node id=\"n2\"/><node "
                                   "id=\"n0\"/><node id=\"n1\"/>\n"
                                   "<edge source=\"n0\" target=\"n1\"/>\n<edge source='n1' "
                                   "target='n2'></edge>\n</graph>\n</graphml>");
  CHECK(path.network(3).schedule()->hash() == network("path", 3).schedule()->hash());
  const File named(
      "p.xml",
      head +
          "<graph edgedefault=\"undirected\"><node id=\"a > b\"/><node id=\"hub\"/><node id=\"c\"/>"
          "<edge source=\"hub\" target=\"a > b\"><data key=\"d0\"> 0.25\n</data></edge>"
          "<edge id=\"e\" source=\"hub\" target=\"c\"><data "
          "key=\"d0\">5e-1</data></edge></graph></graphml>");
  CHECK(named.network(3).schedule()->hash() ==
        File("p.txt", "0 1 0.25\n1 2 0.5\n").network(3).schedule()->hash());
  const File circle(
      "c.graphml",
      head +
          "<graph edgedefault=\"directed\"><edge source=\"0\" target=\"1\"/><edge source=\"1\" "
          "target=\"2\"/><edge source=\"2\" target=\"0\"/></graph></graphml>");
  CHECK_FALSE(circle.network(3).report().symmetric);
  const auto mixed = parse_graphml(
      "<graphml><graph edgedefault=\"directed\"><edge source=\"0\" target=\"1\" "
      "directed=\"false\"/>"
      "</graph></graphml>",
      "m");
  REQUIRE(mixed.ok());
  CHECK_FALSE(mixed->edges[0].directed);
}

TEST_CASE("what is wrong in GraphML is said with its line") {
  CHECK(xml_error("0 1\n1 2\n").starts_with("g.graphml:1: not GraphML"));
  CHECK(xml_error("<graphml>\n<graph>\n<node/>") == "g.graphml:3: a node without id");
  CHECK(xml_error("<graphml>\n<edge source=\"0\"/>") ==
        "g.graphml:2: an edge needs a source and a target");
  CHECK(xml_error("<graphml>\n<edge source=\"0\" target=\"0\"/>")
            .starts_with("g.graphml:2: peer 0 is its own neighbour"));
  CHECK(xml_error("<graphml>\n<graph>\n<edge source=\"0\" ") ==
        "g.graphml:3: a tag begins here and does not end");
  CHECK(xml_error("<graphml></graphml>") == "g.graphml:1: no node in the whole file");
  const std::string key = "<graphml><key id=\"w\" for=\"edge\" attr.name=\"weight\"/>\n";
  CHECK(xml_error(key + "<edge source=\"0\" target=\"1\">\n<data key=\"w\">heavy</data></edge>") ==
        "g.graphml:3: 'heavy' is not a weight");
  CHECK(xml_error(key + "<edge source=\"0\" target=\"1\"><data key=\"w\">1</data></edge>\n<edge "
                        "source=\"1\" target=\"2\"/>") ==
        "g.graphml:3: this edge has no weight, and others have one");
}
