// Drawings: as many circles as peers, as many lines as edges, arrows where an edge goes one way, as
// only one end mixes the other.
#include "topology/drawing.hpp"
#include "tests/topology/test_util.hpp"

using namespace gossamer;
using namespace gossamer::topology;
using test::network;

namespace {

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    ++found;
  return found;
}

std::string drawn(const std::string& kind, int n) {
  const auto schedule = network(kind, n).schedule();
  const auto svg = draw_svg({{schedule.get(), kind, "a <b> & c"}});
  REQUIRE(svg.ok());
  return *svg;
}

}  // namespace

TEST_CASE("a static graph: its peers, its edges, and text that is text") {
  const std::string ring = drawn("ring", 12);
  CHECK(count(ring, "<circle") == 12);
  CHECK(count(ring, "<line") == 12);
  CHECK(count(ring, "<path") == 0);
  CHECK(count(ring, ">ring</text>") == 1);
  CHECK(count(ring, "a &lt;b> &amp; c") == 1);
  CHECK(count(drawn("complete", 9), "<line") == 36);
  CHECK(count(drawn("ring", 1), "<circle") == 1);
}

TEST_CASE(
    "directed edges are arrows, and each round of a period has its colour and its place in the "
    "legend") {
  const std::string exponential =
      drawn("exponential", 8);  // 1, 2 and 4 before: two peers 4 apart are joined both ways
  CHECK(count(exponential, "<path") == 16);
  CHECK(count(exponential, "<line") == 16 + 4);
  const std::string by_round = drawn("one_peer_exponential", 8);
  CHECK(count(by_round, "<line") == 8 + 8 + 4 + 3);
  for (const char* colour : {"#0072B2", "#D55E00", "#009E73"}) CHECK(count(by_round, colour) > 4);
}

TEST_CASE("panels stand in rows of four, and a drawing too small to read is refused by name") {
  const auto ring = network("ring", 5).schedule(),
             large = network("ring", kMostDrawnPeers + 1).schedule(),
             dense = network("complete", 300).schedule();
  const std::vector<Drawn> five(5, Drawn{ring.get(), "ring", ""});
  const auto svg = draw_svg(five);
  REQUIRE(svg.ok());
  CHECK(count(*svg, "<circle") == 25);
  CHECK(svg->find("width=\"1040\"") != std::string::npos);
  CHECK_FALSE(draw_svg({{large.get(), "ring", ""}}).ok());
  const auto refused = draw_svg({{dense.get(), "complete", ""}});
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message.find("complete has more than 20000 edges") != std::string::npos);
}
