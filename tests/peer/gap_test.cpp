// The realised gap of a run, from its logs.
#include "peer/prediction/run_gap.hpp"

#include <cmath>

#include "tests/peer/test_util.hpp"

using namespace gossamer;
using namespace gossamer::peer;
using namespace gossamer::peer::testing;

namespace {

RunGap gap_in(const fs::path& folder) {
  const auto gap = gap_of_run(folder, {});
  REQUIRE_MESSAGE(gap.ok(), (gap.ok() ? "" : gap.error().message));
  return *gap;
}

/// Nearly no training, with different initial parameters, so that mixing dominates.
const Overrides kMixing{"run.peers=9",  "run.init=different", "optimizer.rate=1e-12",
                        "data.batch=4", "run.rounds=300",     "log.every=10"};

}  // namespace

TEST_CASE("a synchronous run realises the planned gap") {
  for (const char* kind : {"ring", "exponential", "one_peer_exponential"}) {
    const Folder folder;
    run_in(folder.path / "run",
           kMixing + Overrides{std::string("topology.kind=") + kind, "run.peers=8"});
    const RunGap gap = gap_in(folder.path / "run");
    CAPTURE(kind);
    CHECK(gap.realised == doctest::Approx(gap.planned).epsilon(0.01));
    CHECK(gap.rounds == 300);
    CHECK(gap.missing + gap.stale + gap.early == 0);
    CHECK(gap_text(gap).find("as planned") != std::string::npos);
    CHECK(gap_json(gap)["deviations"] == 0);
  }
}

TEST_CASE(
    "with late rows, the realised gap is the measured rate of convergence of the run's peers") {
  const Folder folder;
  const Left left =
      run_in(folder.path / "run",
             kMixing + Overrides{"algorithm.policy=async", "sim.compute_ms=2", "sim.latency_ms=3"});
  const RunGap gap = gap_in(folder.path / "run");
  CHECK(gap.stale > 0);
  CHECK(gap.missing > 0);  // before the first row has come
  CHECK(gap.max_staleness ==
        3);  // 2, and every other row is not sent: the link still carries the one before
  CHECK(gap.realised < 0.9 * gap.planned);
  const auto records = left.records("network");
  const auto at = [&](std::size_t i) { return records[i]["consensus_distance"].get<double>(); };
  const double factor =
      std::pow(at(8) / at(4), 1.0 / 40);  // rounds 40 to 80: above float32's rounding
  CHECK(1 - factor == doctest::Approx(gap.realised).epsilon(0.02));
}

TEST_CASE(
    "a peer that was away mixed without its neighbours in the rounds in which they mixed without "
    "it") {
  const Folder folder;
  const Left left = run_in(
      folder.path, kMixing + Overrides{"topology.kind=complete", "run.peers=4", "log.every=1"});
  std::string lines = left.log.header.dump() + "\n";
  for (Json record : left.log.records) {
    const auto round = record.value("round", 0);
    if (record["record"] == "round" && record["peer"] == 2) {
      if (round == 12)
        lines += Json({{"record", "membership"},
                       {"round", 12},
                       {"peer", 2},
                       {"seconds", 1.0},
                       {"event", "joined"},
                       {"neighbour", nullptr},
                       {"reachable_peers", 4},
                       {"cause", nullptr}})
                     .dump() +
                 "\n";
      if (round > 10 && round <= 12) continue;  // it did rounds to 10, and began again at 12
    } else if (record["record"] == "round" && (round == 11 || round == 12)) {
      lines += Json({{"record", "deviations"},
                     {"round", round - 1},
                     {"peer", record["peer"]},
                     {"deviations",
                      Json::array({{{"round", round - 1}, {"from", 2}, {"used_round", nullptr}}})}})
                   .dump() +
               "\n";
    }
    lines += record.dump() + "\n";
  }
  written(folder.path / "log-0.jsonl", lines);
  const RunGap gap = gap_in(folder.path);
  CHECK(gap.missing == 2 * 2 * 3);
  CHECK(gap.rounds == 300);
}

TEST_CASE("incomplete runs and runs that do not mix are refused") {
  const Folder folder;
  const auto refused = [](const fs::path& path, ErrorKind kind, const char* words) {
    const auto gap = gap_of_run(path, {});
    REQUIRE_FALSE(gap.ok());
    CHECK(gap.error().kind == kind);
    CAPTURE(gap.error().message);
    CHECK(gap.error().message.find(words) != std::string::npos);
  };
  refused(folder.path, ErrorKind::data, "contains no run");
  run_in(folder.path / "allreduce", {"run.peers=3", "run.rounds=2", "algorithm.kind=allreduce"});
  refused(folder.path / "allreduce", ErrorKind::invalid, "does not mix");
  run_in(folder.path / "median", {"mixing.rule=median", "run.peers=4", "run.rounds=2"});
  refused(folder.path / "median", ErrorKind::invalid, "the mixing rule 'median' weighs rows by");
  run_in(folder.path / "sums", {"run.peers=3", "run.rounds=2", "algorithm.kind=async_push_sum"});
  refused(folder.path / "sums", ErrorKind::invalid, "does not mix");
  run_in(folder.path / "none", {"run.peers=3", "run.rounds=0"});
  refused(folder.path / "none", ErrorKind::data, "no round");

  const Left left = run_in(folder.path / "odd", {"run.peers=3", "run.rounds=4", "log.every=1"});
  const auto rewritten = [&](const Json& deviations) {
    std::string lines = left.log.header.dump() + "\n";
    for (Json record : left.log.records) {
      if (record["record"] == "round" && record["round"] == 2 && record["peer"] == 0 &&
          !deviations.empty())
        lines +=
            Json({{"record", "deviations"}, {"round", 1}, {"peer", 0}, {"deviations", deviations}})
                .dump() +
            "\n";
      if (record["record"] == "round" && record["peer"] == 2 && deviations.empty()) continue;
      lines += record.dump() + "\n";
    }
    written(folder.path / "odd" / "log-0.jsonl", lines);
  };
  rewritten(Json::array());
  refused(folder.path / "odd", ErrorKind::data, "missing: 2");
  rewritten(Json::array({{{"round", 1}, {"from", 7}, {"used_round", 0}}}));
  refused(folder.path / "odd", ErrorKind::data, "that is in no log");
  rewritten(Json::array({{{"round", 1}, {"from", 1}, {"used_round", 3}}}));
  refused(folder.path / "odd", ErrorKind::data, "was not there");
  rewritten(Json::array({{{"round", 1}, {"from", 1}, {"used_round", 2}}}));
  CHECK(gap_in(folder.path / "odd").early == 1);
  rewritten(Json::array({{{"round", 1}, {"from", "1"}, {"used_round", 3}}}));
  refused(folder.path / "odd", ErrorKind::data, "deviations");
}
