// A process that joins a network without finding a donor for its rows.
#include "gossip/scheduler.hpp"
#include "peer/runtime/host.hpp"
#include "tests/peer/test_util.hpp"

using namespace gossamer;
using namespace gossamer::peer;
using namespace gossamer::peer::testing;

namespace {

/// A link that drops all chunks.
struct Nowhere final : gossip::Link {
  void send(gossip::Chunk) override {}
};

/// Peer 1 of a path of three, alone in its process. The test acts as its partners.
struct Joiner {
  Joiner() {
    recorder = Recorder::create(setup, {1}, folder.path / "run", "real").value();
    host =
        std::make_unique<Host>(setup, scheduler, executor, *recorder, HostRequest{.hosted = {1}});
    for (const int partner : {0, 2}) host->group().exchange().connect(1, partner, nowhere);
  }
  /// The error with which it ends, and the time.
  std::pair<std::string, double> end() {
    scheduler.run();
    REQUIRE(host->error());
    CHECK(host->error()->kind == ErrorKind::join_timeout);
    return {host->error()->message, gossip::seconds(scheduler.now())};
  }

  Folder folder;
  Setup setup =
      set_up({"run.peers=3", "topology.kind=path", "net.failure_timeout=2", "net.join_timeout=30"});
  gossip::VirtualScheduler scheduler;
  gossip::InlineExecutor executor;
  Nowhere nowhere;
  std::unique_ptr<Recorder> recorder;
  std::unique_ptr<Host> host;
};

const std::string kGone = "its connection broke";

}  // namespace

TEST_CASE("a joining peer without any partner ends after the failure timeout") {
  Joiner joiner;
  joiner.host->join({{1, 0}});
  joiner.scheduler.after(std::chrono::seconds(5), [&] {
    joiner.host->group().engine(1).membership().on_link_lost(0, kGone);
  });
  const auto [message, at] = joiner.end();
  CHECK(message ==
        "peer 1 came too late: every peer that it could ask for rows has left, because it has done "
        "its last round or ended");
  CHECK(at >= 7);
  CHECK(at <= 8);
}

TEST_CASE("processes that all join, and thus have no rows, do not wait for each other forever") {
  Joiner joiner;
  joiner.host->join({{1, 0}});
  joiner.scheduler.after(std::chrono::seconds(5),
                         [&] { joiner.host->group().engine(1).membership().on_link_restored(2); });
  const auto [message, at] = joiner.end();
  CHECK(message ==
        "peer 1 joins nothing: for 30 s all that it reaches wait for rows themselves; stop all "
        "processes, and start them again "
        "together, with --resume auto");
  CHECK(at >= 30);
  CHECK(at <= 31);
}

TEST_CASE(
    "a joining peer waits for its donor however long the donor's round takes; the timeout starts "
    "when the donor is lost") {
  Joiner joiner;
  joiner.host->join({{1, 0}, {1, 2}});
  REQUIRE(joiner.host->group()
              .exchange()
              .deliver(gossip::Chunk({2, 1, 3, 0, 0, 0, gossip::ControlMessage::resync}, {}, {}))
              .ok());
  joiner.scheduler.after(std::chrono::seconds(500), [&] {
    joiner.host->group().engine(1).membership().on_link_lost(2, kGone);
  });
  const auto [message, at] = joiner.end();
  CHECK(message.starts_with("peer 1 joins nothing: "));
  CHECK(at >= 530);
  CHECK(at <= 532);
}
