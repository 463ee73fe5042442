// The page of a run: its paths, and what it serves of a run that is under way and of logs.
#include "peer/watch/run_page.hpp"

#include <chrono>
#include <string>

#include "peer/watch/log_follower.hpp"
#include "tests/peer/test_util.hpp"
#include "tests/peer/watch/records.hpp"
#include "tests/peer/watch/web_client.hpp"

using namespace gossamer;
using namespace gossamer::peer;
using namespace gossamer::peer::testing;

namespace {

Json json_of(const WebAnswer& answer) {
  REQUIRE(answer.status == 200);
  REQUIRE(answer.type == "application/json");
  auto json = parse_json(answer.content);
  REQUIRE(json.ok());
  return std::move(json).value();
}

void append(const fs::path& path, const Json& record) {
  std::ofstream(path, std::ios::binary | std::ios::app) << text_of(record) << "\n";
}

/// The log of one peer with three rounds, which a follower has read.
struct FollowedLog {
  Folder folder;
  fs::path path = folder.path / "log-0.jsonl";
  RunView view;
  LogFollower follower{folder.path, view};

  FollowedLog() {
    append(path, header_of(1, {0}));
    for (const int round : {0, 2, 4}) append(path, round_of(0, round, 1));
    REQUIRE(follower.update().ok());
  }
  /// Leaves the header and the first round.
  void cut() const {
    const std::string lines = content_of(path);
    fs::resize_file(path, lines.find("\n", lines.find("\n") + 1) + 1);
  }
};

}  // namespace

TEST_CASE("The paths of a page") {
  RunView view;
  REQUIRE(view.begin(header_of(4, {0, 1, 2, 3})).ok());
  CHECK(json_of(answer_of(view, "/health"))["status"] == "starting");
  view.add(round_of(0, 2, 1), {0, 1, 2, 3});
  CHECK(answer_of(view, "/").type == "text/html; charset=utf-8");
  CHECK(answer_of(view, "/").content.starts_with("<!doctype html>"));
  CHECK(answer_of(view, "/page.js").type == "text/javascript; charset=utf-8");
  CHECK(answer_of(view, "/page.css").type == "text/css; charset=utf-8");
  CHECK(answer_of(view, "/metrics").content.starts_with("# HELP gossamer_run_info"));
  CHECK(answer_of(view, "/metrics").content.find("gossamer_timer") == std::string::npos);
  CHECK(json_of(answer_of(view, "/health"))["status"] == "training");
  CHECK(json_of(answer_of(view, "/health"))["round"] == 2);
  const Json state = json_of(answer_of(view, "/state"));
  CHECK(state == json_of(answer_of(view, "/state?after=0")));
  CHECK_FALSE(
      json_of(answer_of(view, "/state?after=" + text_of(state["version"]))).contains("run"));
  CHECK(json_of(answer_of(view, "/rounds/2"))["train_loss"] ==
        Json({1, nullptr, nullptr, nullptr}));
}

TEST_CASE("The metrics of a process count refused connections, and timers by their delay") {
  RunView view;
  REQUIRE(view.begin(header_of(4, {0})).ok());
  ProcessFigures figures{{.keys = 3, .handshakes = 5, .hellos = 7}, {}};
  for (const int milliseconds : {0, 40, 60, 2000})
    figures.timer_delays.add(std::chrono::milliseconds(milliseconds));
  view.set_process(figures);
  const std::string text = answer_of(view, "/metrics").content;
  for (const char* line : {
           "# TYPE gossamer_refused_connections_total counter",
           "gossamer_refused_connections_total{reason=\"keys\"} 3",
           "gossamer_refused_connections_total{reason=\"handshakes\"} 5",
           "gossamer_refused_connections_total{reason=\"hellos\"} 7",
           "# TYPE gossamer_timer_delay_seconds histogram",
           "gossamer_timer_delay_seconds_bucket{le=\"0.001\"} 1",
           "gossamer_timer_delay_seconds_bucket{le=\"0.01\"} 1",
           "gossamer_timer_delay_seconds_bucket{le=\"0.05\"} 2",
           "gossamer_timer_delay_seconds_bucket{le=\"0.25\"} 3",
           "gossamer_timer_delay_seconds_bucket{le=\"1\"} 3",
           "gossamer_timer_delay_seconds_bucket{le=\"+Inf\"} 4",
           "gossamer_timer_delay_seconds_count 4",
       })
    CHECK_MESSAGE(text.find(std::string(line) + "\n") != std::string::npos, line);
}

TEST_CASE("Of the log of a worker the state says which one it is, and of how many") {
  Json header = header_of(2, {0});
  const auto run = [&header] {
    RunView view;
    REQUIRE(view.begin(header).ok());
    return json_of(answer_of(view, "/state"))["run"];
  };
  header["config"]["split"] = {{"layers", 2u}, {"parameters", 3u}};
  CHECK(run()["part"].is_null());
  CHECK(run()["workers"].is_null());
  header["part"] = 1;
  CHECK(run()["part"] == 1);
  CHECK(run()["workers"] == 6);
}

TEST_CASE("Paths that are wrong get an error and no file") {
  RunView view;
  for (const char* path : {"/../../etc/passwd", "//", "/page.js/", "", "state", "/page", "/state/",
                           "/rounds", "*", "http://localhost/state"}) {
    CAPTURE(path);
    CHECK(answer_of(view, path).status == 404);
  }
  for (const char* path : {"/state?after=", "/state?after=x", "/state?after=-1", "/state?before=1",
                           "/state?after=99999999999999999999", "/rounds/", "/rounds/x",
                           "/rounds/1/2", "/rounds/-1"}) {
    CAPTURE(path);
    CHECK(answer_of(view, path).status == 400);
  }
  CHECK(answer_of(view, "/rounds/0").status == 404);
  CHECK(json_of(answer_of(view, "/state"))["run"]["run_id"].is_null());  // before the first header
}

TEST_CASE("A run under way is served, and its logs show the same") {
  const Folder folder;
  std::uint16_t port = 0;
  Json live;
  RunRequest request;
  request.message = [&port](const std::string& line) {
    if (const auto at = line.find("http://127.0.0.1:"); at != line.npos)
      port = static_cast<std::uint16_t>(std::stoi(line.substr(at + 17)));
  };
  request.on_progress = [&](const Json& record) {
    if (record["round"] != 6) return;
    const std::string text =
        answer_at(port, "GET /state HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    live = parse_json(text.substr(text.find("\r\n\r\n") + 4)).value();
  };
  run_in(folder.path,
         {"run.peers=4", "run.rounds=6", "log.every=2", "topology.kind=ring", "data.kind=quadratic",
          "data.partition=iid", "data.batch=0", "model.kind=linear", "net.http=127.0.0.1:0"},
         std::move(request));
  REQUIRE(port != 0);
  CHECK(live["predicted"]["rounds"] == Json({0, 2, 4, 6}));
  CHECK(live["nodes"]["state"] == Json({"training", "training", "training", "training"}));
  RunView view;
  REQUIRE(LogFollower(folder.path, view).update().ok());
  const Json logs = json_of(answer_of(view, "/state"));
  CHECK(live["rounds"] == logs["rounds"]);
  CHECK(live["run"] == logs["run"]);
  CHECK(logs["nodes"]["state"] == Json({"finished", "finished", "finished", "finished"}));
  for (const char* column : {"round", "train_loss", "distance", "bytes_sent", "mix_seconds"})
    CHECK(live["nodes"][column] == logs["nodes"][column]);
  CHECK(logs["nodes"]["distance"][0].is_number());
  CHECK(logs["end"]["reason"] == "finished");
}

TEST_CASE("A follower adds what processes append, and new logs") {
  const Folder folder;
  RunView view;
  LogFollower follower(folder.path, view);
  REQUIRE(follower.update().ok());
  CHECK(view.after(0).run == nullptr);
  const fs::path first = folder.path / "log-0.jsonl", second = folder.path / "b" / "log-1.jsonl";
  append(first, header_of(2, {0}));
  append(first, round_of(0, 0, 1));
  REQUIRE(follower.update().ok());
  CHECK(view.after(0).rounds.size() == 1);
  std::ofstream(first, std::ios::app) << text_of(round_of(0, 2, 1)).substr(0, 20);
  REQUIRE(follower.update().ok());  // half a line
  CHECK(view.after(0).rounds.size() == 1);
  std::ofstream(first, std::ios::app) << text_of(round_of(0, 2, 1)).substr(20) << "\n";
  fs::create_directory(folder.path / "b");
  append(second, header_of(2, {1}));
  append(second, round_of(1, 2, 3));
  REQUIRE(follower.update().ok());
  const ViewSnapshot all = view.after(0);
  REQUIRE(all.rounds.size() == 2);
  CHECK(all.rounds.back().train_loss.mean() == 2);
}

TEST_CASE("A follower starts anew where a log was cut or replaced, as a resumed run does it") {
  FollowedLog log;
  REQUIRE(log.view.after(0).rounds.size() == 3);
  const std::uint64_t before = log.view.after(0).version;
  log.cut();
  REQUIRE(log.follower.update().ok());
  CHECK(log.view.after(0).rounds.size() == 1);
  CHECK(log.view.after(before).run != nullptr);
  // A file of the same length, with other content.
  fs::rename(log.path, log.folder.path / "old");
  append(log.path, header_of(1, {0}, "s"));
  append(log.path, round_of(0, 6, 1));
  REQUIRE(log.follower.update().ok());
  CHECK(log.view.after(0).run->at("run_id") == "s");
  CHECK(log.view.after(0).rounds.front().round == 6);
}

TEST_CASE("A follower starts anew where a log was cut and has grown beyond its old length") {
  FollowedLog log;
  log.cut();
  for (const int round : {2, 4, 6, 8}) append(log.path, round_of(0, round, 0.12345));
  REQUIRE(log.follower.update().ok());
  const ViewSnapshot all = log.view.after(0);
  REQUIRE(all.rounds.size() == 5);
  CHECK(all.rounds.back().nodes == 1);
  CHECK(all.rounds[2].train_loss.mean() == 0.12345);
  CHECK(all.rounds[2].bytes_sent == 400);  // counted once
}

TEST_CASE("A follower reads logs side by side, so that their rounds become whole") {
  const Folder folder;
  constexpr int peers = 64, rounds = 260;
  const std::vector<double> sketch(1024, 1.0);
  for (int peer = 0; peer < peers; ++peer) {
    std::string text = text_of(header_of(peers, {peer})) + "\n";
    for (int k = 0; k < rounds; ++k) {
      Json record = round_of(peer, 2 * k, 1);
      record["sketch"] = encode_sketch(sketch);
      text += text_of(record) + "\n";
    }
    written(folder.path / ("log-" + std::to_string(peer) + ".jsonl"), text);
  }
  static_assert(peers * rounds * 1024 > RoundHistory::kMostSketchValues);
  RunView view;
  LogFollower follower(folder.path, view);
  REQUIRE(follower.update().ok());
  const ViewSnapshot all = view.after(0);
  REQUIRE(all.rounds.size() == rounds);
  for (const RoundFigures& round : all.rounds) CHECK(round.consensus_distance == 0);
}

TEST_CASE("A follower that is stopped reads no further") {
  FollowedLog log;
  for (int round = 6; round < 600; round += 2) append(log.path, round_of(0, round, 1));
  int parts = 0;
  RunView view;
  LogFollower stopped(log.folder.path, view, [&parts] { return parts++ == 1; });
  REQUIRE(stopped.update().ok());
  CHECK(view.after(0).rounds.size() < 10);
  REQUIRE(log.follower.update().ok());
  CHECK(log.view.after(0).rounds.size() == 300);
}

TEST_CASE("A page shows what its view had before it was served") {
  RunPage page;
  REQUIRE(page.view().begin(header_of(1, {0})).ok());
  page.view().add(round_of(0, 2, 1), {0});
  REQUIRE(page.serve("--http", "127.0.0.1:0").ok());
  const auto port = static_cast<std::uint16_t>(std::stoi(page.url().substr(17)));
  const std::string text =
      answer_at(port, "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  CHECK(text.find("training") != std::string::npos);
  CHECK(RunPage().serve("--http", "nowhere").error().message.starts_with("--http: 'nowhere'"));
}

TEST_CASE("A follower names what is wrong with a log") {
  const Folder folder;
  RunView view;
  LogFollower follower(folder.path, view);
  append(folder.path / "log-0.jsonl", header_of(2, {0}));
  append(folder.path / "log-1.jsonl", header_of(2, {1}, "another"));
  const Status other = follower.update();
  REQUIRE_FALSE(other.ok());
  CHECK(other.error().message.find("log-1.jsonl is the log of another run; all logs") !=
        std::string::npos);
  fs::remove(folder.path / "log-1.jsonl");
  append(folder.path / "log-0.jsonl", round_of(5, 0, 1));
  const Status foreign = follower.update();
  REQUIRE_FALSE(foreign.ok());
  CHECK(foreign.error().message.find("log-0.jsonl:2: peer: 5 is not hosted") != std::string::npos);
  CHECK_FALSE(LogFollower(folder.path / "missing", view).update().ok());
}
