// `collect` refuses files of a run that contradict each other.
#include "peer/log/collect.hpp"
#include "peer/log/open_participants.hpp"
#include "peer/log/summary.hpp"

#include "tests/peer/test_util.hpp"

using namespace gossamer;
using namespace gossamer::peer;
using namespace gossamer::peer::testing;

namespace {

/// The folder of a run of 3 peers, to be damaged.
struct Damaged {
  Folder folder;
  Left left = run_in(folder.path, {"run.peers=3", "run.rounds=2", "data.batch=4"});

  /// collect fails with a message that contains all of `words`.
  void refuses(const std::vector<std::string>& words) const {
    const auto summary = collect(folder.path);
    REQUIRE_FALSE(summary.ok());
    CHECK(summary.error().kind == ErrorKind::data);
    CAPTURE(summary.error().message);
    for (const std::string& word : words)
      CHECK(summary.error().message.find(word) != std::string::npos);
  }

  /// Replaces the header of the log.
  void write_header(const Json& header) const {
    std::string lines = header.dump() + "\n";
    for (const Json& record : left.log.records) lines += record.dump() + "\n";
    written(folder.path / "log-0.jsonl", lines);
  }
};

}  // namespace

TEST_CASE("collect reproduces the summary of an undamaged run") {
  const Damaged run;
  auto summary = collect(run.folder.path);
  REQUIRE_MESSAGE(summary.ok(), (summary.ok() ? "" : summary.error().message));
  CHECK(summary->at("deviations") == Json{{"rows", 0}, {"by_sender", Json::object()}});
  summary->erase("deviations");  // gossamer run counts none
  CHECK(*summary == run.left.summary);
}

TEST_CASE("collect counts the rows that mixes lacked, by their sender") {
  Damaged run;
  Json record = {{"record", "deviations"}, {"round", 1}, {"peer", 0}};
  for (const int from : {1, 1, 2})
    record["deviations"].push_back({{"round", 1}, {"from", from}, {"used_round", nullptr}});
  auto& records = run.left.log.records;
  records.insert(records.end() - 1, record);
  run.write_header(run.left.log.header);
  const auto summary = collect(run.folder.path);
  REQUIRE_MESSAGE(summary.ok(), (summary.ok() ? "" : summary.error().message));
  CHECK(summary->at("deviations") == Json{{"rows", 3}, {"by_sender", {{"1", 2}, {"2", 1}}}});
  CHECK(
      summary_text(*summary).find(
          "deviations              3 rows were missing or late in mixes, 2 of them of peer 1\n") !=
      std::string::npos);
}

TEST_CASE("a flipped bit in the final parameters is detected, and the peer is named") {
  const Damaged run;
  const fs::path path = run.folder.path / "final-0.safetensors";
  std::string bytes = content_of(path);
  bytes[bytes.size() - 2] =
      static_cast<char>(bytes[bytes.size() - 2] ^ 1);  // of the last peer's last value
  written(path, bytes);
  run.refuses({path.string(), "peer 2"});
}

TEST_CASE("a header that differs from the resolved configuration is an error that names the key") {
  const Damaged run;
  Json header = run.left.log.header;
  header["config"]["optimizer"]["rate"] = 0.75;
  run.write_header(header);
  run.refuses({"log-0.jsonl:1", "optimizer.rate", "0.75", "resolved-0.toml"});
  header = run.left.log.header;
  header["config"]["data"].erase("batch");
  run.write_header(header);
  run.refuses({"log-0.jsonl:1", "data.batch"});
  header = run.left.log.header;
  header["config"]["log"]["every"] = 7;  // each machine's own
  run.write_header(header);
  CHECK(collect(run.folder.path).ok());
}

TEST_CASE("peers and parameters that do not match the configuration are refused") {
  const Damaged run;
  Json header = run.left.log.header;
  header["parameters"] = 7;
  run.write_header(header);
  run.refuses({"log-0.jsonl:1", "parameters", "7"});
  header = run.left.log.header;
  header["peers"] = 4;
  run.write_header(header);
  run.refuses({"1 of 4 peers are missing: 3"});
}

TEST_CASE("a log that ends within its header, or without an end record, is refused") {
  const Damaged run;
  const std::string log = content_of(run.folder.path / "log-0.jsonl");
  written(run.folder.path / "log-0.jsonl", log.substr(0, 100));
  run.refuses({"log-0.jsonl", "ends within its header"});
  written(run.folder.path / "log-0.jsonl", log.substr(0, log.size() - 1));
  run.refuses({"log-0.jsonl", "has no end"});
}

TEST_CASE("rounds that an open run dropped when it was resumed have no participants") {
  const auto event = [](const char* kind, int round, const char* ids) {
    return Json{{"record", "membership"}, {"event", kind}, {"round", round}, {"participants", ids}};
  };
  const auto round = [](int t) { return Json{{"record", "round"}, {"round", t}}; };
  RunOptions run;
  run.open = true;
  run.peers = 6;
  run.rounds = 1000;
  run.participants = {"0-2"};
  std::vector<ProcessLog> logs(2);
  // The others joined for rounds 100 and 600; the run was resumed from round 500, and they came
  // back.
  logs[0].records = {round(0),
                     event("participants", 100, "0-3"),
                     event("participants", 500, "0-2"),
                     event("participants", 650, "0-3"),
                     event("participants", 700, "0-3,5"),
                     round(1000)};
  logs[1].records = {event("joined", 600, ""), event("participants", 600, "0-3,5"), round(640),
                     event("joined", 700, ""), event("participants", 700, "0-3,5"), round(1000)};
  const std::vector<std::string> texts{"0-2", "100: 0-3", "500: 0-2", "650: 0-3", "700: 0-3,5"};
  CHECK(open_participants(run, logs)->texts() == texts);
  // Of a change, the peer that leaves with it has a record of the round before alone.
  std::vector<ProcessLog> left(2);
  left[0].records = {round(0), round(299), round(300)};
  left[1].records = {round(0), event("participants", 300, "1,2"), round(301)};
  CHECK(open_participants(run, left)->texts() == std::vector<std::string>{"0-2", "300: 1,2"});
  std::vector<ProcessLog> forged(1);
  forged[0].records = {event("joined", 600, ""), event("participants", 500, "0-1")};
  CHECK_FALSE(open_participants(run, forged).ok());
  // A peer that joins has no part in what was before.
  std::swap(logs[0], logs[1]);
  CHECK(open_participants(run, logs)->texts() ==
        std::vector<std::string>{"0-2", "100: 0-3", "500: 0-2", "600: 0-3,5", "650: 0-3",
                                 "700: 0-3,5"});
}
