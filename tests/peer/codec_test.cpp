// Codecs in whole runs: bytes in the log, bit-identical results, and the pairs that are refused.
#include <cmath>

#include "gossip/link.hpp"
#include "tests/peer/test_util.hpp"

using namespace gossamer;
using namespace gossamer::peer;
using namespace gossamer::peer::testing;

namespace {

std::string setup_refusal(const Overrides& overrides) {
  const auto setup = make_setup(configured(Overrides{"run.peers=4"} + overrides));
  return setup.ok() ? "" : setup.error().message;
}

/// A codec, its keys, and the bytes of a message of 650 values.
struct Case {
  std::string algorithm;
  Overrides codec;
  std::size_t bytes;
};
const std::vector<Case> kCases{{"dpsgd", {"codec.kind=bf16"}, 1300},
                               {"dpsgd", {"codec.kind=int8"}, 3 * 4 + 652},
                               {"choco", {"codec.kind=none"}, 2600},
                               {"choco", {"codec.kind=bf16"}, 1300},
                               {"choco", {"codec.kind=int8"}, 3 * 4 + 652},
                               {"choco", {"codec.kind=sign"}, 4 + 84},
                               {"choco", {"codec.kind=topk", "codec.fraction=0.1"}, 65 * 8},
                               {"choco", {"codec.kind=randk", "codec.fraction=0.01"}, 7 * 4}};

}  // namespace

TEST_CASE(
    "the log counts the bytes of messages and 72 per frame; results do not depend on chunk size, "
    "latency or threads") {
  const Folder folder;
  int made = 0;
  for (const Case& c : kCases) {
    const Overrides base = c.codec + Overrides{"algorithm.kind=" + c.algorithm,
                                               "run.peers=4",
                                               "run.rounds=5",
                                               "log.every=0",
                                               "data.batch=8",
                                               "local.threads=1"};
    CAPTURE(fmt::format("{}", fmt::join(base, " ")));
    const Left left = run_in(folder.path / std::to_string(made++), base);
    const std::size_t frame = c.bytes + gossip::kFrameOverheadBytes;
    for (const Json& record : left.records("round"))
      CHECK(record["bytes_sent"] == 2 * frame * record["round"].get<std::size_t>());
    CHECK(left.summary["bytes_sent"] == 4 * 5 * 2 * frame);
    const Left other = run_in(folder.path / std::to_string(made++),
                              base + Overrides{"local.threads=3", "net.chunk_kib=4",
                                               "sim.latency_ms=3", "sim.compute_ms=2"});
    CHECK(other.hash() == left.hash());
    CHECK(run_in(folder.path / std::to_string(made++), base + Overrides{"run.seed=1"}).hash() !=
          left.hash());
  }
}

TEST_CASE("pairs of algorithm and codec without a guarantee are refused, with an alternative") {
  CHECK(setup_refusal({"codec.kind=topk"}) ==
        "codec.kind: 'topk' omits so much of a row that 'dpsgd' does not converge with it; set "
        "algorithm.kind = choco, which has error feedback, or choose a codec that rounds (bf16, "
        "int8)");
  CHECK(setup_refusal({"codec.kind=sign", "algorithm.kind=consensus"})
            .find("algorithm.kind = choco") != std::string::npos);
  CHECK(setup_refusal({"codec.kind=randk", "algorithm.kind=gradient_tracking"})
            .find("algorithm.kind = choco") != std::string::npos);
  CHECK(setup_refusal({"codec.kind=int8", "algorithm.kind=allreduce"}) ==
        "codec.kind: 'allreduce' sends its rows unencoded, so 'int8' would have no effect; set "
        "codec.kind = none, or choose an algorithm that mixes (dpsgd) or one with error feedback "
        "(choco)");
  CHECK(setup_refusal({"codec.kind=bf16", "algorithm.policy=async"}) ==
        "codec.kind: under policy async rows are sent unencoded, not as 'bf16'; set "
        "algorithm.policy = sync, or codec.kind = none");
  for (const char* codec : {"codec.kind=none", "codec.kind=topk"})
    CHECK(setup_refusal({codec, "algorithm.kind=choco", "algorithm.policy=async"})
              .find("algorithm.policy: 'choco' needs all rows of the same round") == 0);
  CHECK(setup_refusal({"algorithm.kind=choco", "topology.kind=one_peer_exponential"})
            .find("needs a symmetric W") != std::string::npos);
  CHECK(setup_refusal({"algorithm.kind=choco", "codec.kind=topk"}) == "");
  CHECK(setup_refusal({"codec.kind=int8"}) == "");
}

TEST_CASE("the keys of a codec are checked, and are part of the shared configuration") {
  const auto refused = [](const Overrides& overrides) {
    const auto config = load_config("", overrides);
    return config.ok() ? std::string() : config.error().message;
  };
  CHECK(refused({"codec.kind=int8", "codec.fraction=0.5"}) ==
        "--set codec.fraction=0.5: codec.fraction: unknown for kind int8; there are: kind");
  CHECK(refused({"codec.kind=topk", "codec.fraction=0"}).find("codec.fraction") !=
        std::string::npos);
  CHECK(refused({"codec.kind=gzip"}).find("there are: bf16, int8, none, randk") !=
        std::string::npos);
  CHECK(configured({"codec.kind=bf16"}).shared_hash() != configured({}).shared_hash());
  CHECK(configured({"codec.kind=topk", "codec.fraction=0.2"}).shared_hash() !=
        configured({"codec.kind=topk"}).shared_hash());
}
