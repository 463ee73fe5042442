// The log of a resumed run, truncated at the round from which the run resumes.
#include <cmath>
#include <sstream>

#include "peer/log/recorder.hpp"
#include "peer/log/resumed_log.hpp"
#include "tests/peer/test_util.hpp"

using namespace gossamer;
using namespace gossamer::peer;
using namespace gossamer::peer::testing;

namespace {

const std::string kHeaderLine =
    R"({"record":"header","schema":1,"run_id":"x","peers":3,"servers":0,"hosted":[1,2],)"
    R"("parameters":4,"device":"cpu","time":"real","started":"","topology":{},)"
    R"("config":{"algorithm":{"kind":"dpsgd"}}})"
    "\n";

std::string round_line(std::uint64_t round, int peer, const std::string& train_loss) {
  return fmt::format(
      R"({{"round":{},"record":"round","peer":{},"seconds":1e0,"train_loss":{},"test_loss":null,)"
      R"("test_accuracy":null,"bytes_sent":0,"bytes_received":0,"train_seconds":0.0,)"
      R"("wait_seconds":0.0,"mix_seconds":0.0}})"
      "\n",
      round, peer, train_loss);
}

const std::string kEndLine =
    R"({"record":"end","reason":"finished","message":"","rounds":3,"seconds":1.0,)"
    R"("wall_seconds":1.0,"node_steps":6,"bytes_sent":0,)"
    R"("refused_connections":null,"lending_links":null,)"
    R"("row_hashes":["0000000000000000","0000000000000000"]})"
    "\n";

/// Writes a log of `lines` to the folder, and reads it as a resumed run does.
ResumedLog found(const Folder& folder, const std::string& lines) {
  written(folder.path / "log-1.jsonl", lines);
  auto log = ResumedLog::read(folder.path / "log-1.jsonl", 1);
  REQUIRE_MESSAGE(log.ok(), (log.ok() ? "" : log.error().message));
  REQUIRE(log->has_value());
  return std::move(**log);
}

}  // namespace

TEST_CASE("a resumed log: later records are removed, and all other bytes are unchanged") {
  const Folder folder;
  // The peers are in different rounds, and no line has the form that this version would write.
  const std::string kept =
      kHeaderLine + round_line(0, 2, "0.75") + round_line(1, 2, "5e-1") + round_line(0, 1, "2");
  const ResumedLog log =
      found(folder, kHeaderLine + round_line(0, 2, "0.75") + round_line(1, 2, "5e-1") +
                        round_line(2, 2, "0.25") + round_line(0, 1, "2") +
                        round_line(3, 2, "0.125") + kEndLine + R"({"record":"rou)");
  CHECK(log.finished());
  CHECK(log.header().at("run_id") == "x");
  const auto losses = log.truncate(2);
  REQUIRE(losses.ok());
  CHECK(content_of(folder.path / "log-1.jsonl") == kept);
  CHECK(*losses == std::vector<double>{2, 0.5});
  const auto none = found(folder, kept).truncate(0);
  REQUIRE(none.ok());
  CHECK(content_of(folder.path / "log-1.jsonl") == kHeaderLine);
  CHECK(std::ranges::all_of(*none, [](double loss) { return std::isnan(loss); }));
}

TEST_CASE("a resumed log: millions of bytes, and a loss that is null") {
  const Folder folder;
  std::string kept = kHeaderLine, all;
  for (std::uint64_t round = 0; round < 20'000; ++round)
    kept += round_line(round, 1 + static_cast<int>(round % 2), "1.5");
  kept += round_line(20'000, 1, "null");
  all = kept + round_line(20'001, 2, "7");
  const auto losses = found(folder, all).truncate(20'001);
  REQUIRE(losses.ok());
  CHECK((content_of(folder.path / "log-1.jsonl") == kept));
  CHECK(*losses == std::vector<double>{1.5, 1.5});
}

TEST_CASE("a resumed log: if only its last records are removed, the file is truncated in place") {
  const Folder folder;
  const std::string lines = kHeaderLine + round_line(0, 1, "2") + round_line(7, 1, "1");
  for (const auto& [cut_at, kept] :
       {std::pair(9, lines), std::pair(8, lines), std::pair(7, kHeaderLine + round_line(0, 1, "2")),
        std::pair(0, kHeaderLine)}) {
    const ResumedLog log = found(
        folder, lines + (cut_at == 8 ? kEndLine : std::string()) + R"({"record":"round","ro)");
    const auto beside = folder.path / "the-same-file";
    std::filesystem::create_hard_link(folder.path / "log-1.jsonl", beside);
    REQUIRE(log.truncate(static_cast<gossip::Round>(cut_at)).ok());
    CHECK(content_of(folder.path / "log-1.jsonl") == kept);
    CHECK(content_of(beside) == kept);
    std::filesystem::remove(beside);
  }
}

TEST_CASE(
    "a resumed log: if another process writes to it, none of its records is lost, and the log is a "
    "new file") {
  const Folder folder;
  const auto path = folder.path / "log-1.jsonl";
  const std::string kept = kHeaderLine + round_line(0, 1, "2"),
                    lines = kept + round_line(7, 1, "1");
  const ResumedLog locked = found(folder, lines);
  std::filesystem::create_hard_link(path, folder.path / "theirs");
  {
    const RecordFile theirs = RecordFile::append(path).value();
    REQUIRE(locked.truncate(5).ok());
  }
  CHECK(content_of(path) == kept);
  CHECK(content_of(folder.path / "theirs") == lines);
  const ResumedLog grown = found(folder, lines);
  written(path, lines + round_line(8, 1, "3"));
  REQUIRE(grown.truncate(5).ok());
  CHECK(content_of(path) == kept);
  const ResumedLog changed = found(folder, lines);
  written(path, kHeaderLine);  // where the line that goes began there is nothing any more
  REQUIRE(changed.truncate(7).ok());
  CHECK(content_of(path) == kHeaderLine);
}

TEST_CASE("a resumed log: ends within its header, damaged, missing") {
  const Folder folder;
  written(folder.path / "log-1.jsonl", kHeaderLine.substr(0, 40));
  const auto cut = ResumedLog::read(folder.path / "log-1.jsonl", 1);
  REQUIRE(cut.ok());
  CHECK_FALSE(cut->has_value());
  written(folder.path / "log-1.jsonl", kHeaderLine + "nonsense\n");
  const auto damaged = ResumedLog::read(folder.path / "log-1.jsonl", 1);
  REQUIRE_FALSE(damaged.ok());
  CHECK(damaged.error().message.find("log-1.jsonl:2: not JSON") != std::string::npos);
  CHECK_FALSE(ResumedLog::read(folder.path / "log-9.jsonl", 9).ok());
}

TEST_CASE("a log that is resumed at a round takes no records of earlier rounds") {
  const Folder folder;
  const Setup setup = set_up({"run.peers=3", "run.rounds=20", "log.every=1", "log.sketch=off"});
  const auto record = [](Recorder& recorder, gossip::Round round) {
    RoundMetrics metrics;
    metrics.round = round;
    metrics.peer = 1;
    CHECK(recorder.round(metrics).ok());
  };
  const auto rounds_recorded = [&folder] {
    std::vector<std::uint64_t> rounds;
    std::istringstream lines(content_of(folder.path / "run" / "log-1.jsonl"));
    for (std::string line; std::getline(lines, line);)
      if (const Json each = Json::parse(line); each.contains("round"))
        rounds.push_back(each["round"]);
    return rounds;
  };
  {
    auto recorder = Recorder::create(setup, {1}, folder.path / "run", "real");
    REQUIRE(recorder.ok());
    for (const gossip::Round round : {0, 1, 2, 3, 4}) record(**recorder, round);
  }
  auto recorder = Recorder::reopen(setup, {1}, folder.path / "run", "real");
  REQUIRE(recorder.ok());
  REQUIRE((*recorder)->resume_at(3, true).ok());
  for (const gossip::Round round : {1, 2, 3, 4}) record(**recorder, round);
  CHECK(rounds_recorded() == std::vector<std::uint64_t>{0, 1, 2, 3, 4});
}
