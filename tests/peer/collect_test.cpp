// `collect` refuses files of a run that contradict each other.
#include "peer/log/collect.hpp"
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
