// Bytes by link.
#include "peer/watch/link_traffic.hpp"

#include <doctest/doctest.h>

using namespace gossamer;
using namespace gossamer::peer;

namespace {

struct Sink final : gossip::Link {
  void send(gossip::Chunk) override { ++chunks; }
  bool delays_writer() const override { return true; }
  int chunks = 0;
};

}  // namespace

TEST_CASE("A counted link passes everything on, and counts values and headers") {
  LinkTraffic traffic;
  Sink sink;
  gossip::Link& link = traffic.counted(2, 5, sink);
  const std::vector<float> values(10);
  link.send(gossip::Chunk({2, 5, 0}, values, {}));
  link.send(gossip::Chunk({2, 5, 0}, {}, {}));
  CHECK(sink.chunks == 2);
  CHECK(link.delays_writer());
  const auto owned = traffic.counted(2, 7, std::make_unique<Sink>());
  CHECK(traffic.sent_by(2) == Json::array({{5, 2 * gossip::kFrameOverheadBytes + 40}}));
  owned->send(gossip::Chunk({2, 7, 0}, {}, {}));
  CHECK(traffic.sent_by(2).size() == 2);
  CHECK(traffic.sent_by(1).is_null());
  CHECK(traffic.sent_by(3).is_null());
}

TEST_CASE("Of a node with many links none are listed") {
  LinkTraffic traffic;
  Sink sink;
  for (int to = 1; to <= static_cast<int>(LinkTraffic::kMostListed) + 1; ++to) {
    if (to > 1) CHECK(traffic.sent_by(0).size() == static_cast<std::size_t>(to) - 1);
    traffic.counted(0, to, sink).send(gossip::Chunk({0, to, 0}, {}, {}));
  }
  CHECK(traffic.sent_by(0).is_null());
}
