// The workers of a replica over sockets: messages of any length in their order, the end, and what
// a worker that ends early, or sends what it must not, leaves to the other.
#include <cmath>
#include <functional>
#include <thread>

#include "peer/replica/replica_network.hpp"
#include "tests/peer/test_util.hpp"
#include "tests/text_test_util.hpp"

using namespace gossamer;
using namespace gossamer::peer;
using namespace gossamer::peer::testing;

namespace {

/// A worker of a replica of two, as in a process of its own.
struct WorkerProcess {
  WorkerProcess(const Config& config, int part)
      : place{0, part},
        links(std::make_shared<ReplicaLinks>(part, config.model.split.workers())),
        setup(make_setup(part_config(config, place), {}, nullptr, {part, links.get()}).value()),
        network(
            ReplicaNetwork::make(setup, {place, replica_config(config, place), links}).value()) {}

  WorkerPlace place;
  std::shared_ptr<ReplicaLinks> links;
  Setup setup;
  std::unique_ptr<ReplicaNetwork> network;
};

using Work = std::function<Status(ReplicaLinks& links)>;

/// Both workers join, work, and leave with what they return. Returns with what they end.
std::vector<Status> run_replica(const Work& first, const Work& second) {
  const Folder folder;
  const Config config =
      configured({"run.peers=1", "topology.kind=complete", "model.kind=mlp", "model.hidden=[4]",
                  "data.batch=4", "split.layers=2", "net.listen=127.0.0.1:0",
                  "net.failure_timeout=30", "net.rendezvous=" + (folder.path / "meet").string()});
  std::vector<Status> ended(2);
  const auto run = [&](int part, const Work& work) {
    WorkerProcess worker(config, part);
    Status status = worker.network->join();
    if (status.ok()) status = work(*worker.links);
    ended[static_cast<std::size_t>(part)] = worker.network->leave(status);
  };
  std::thread other([&] { run(1, second); });
  run(0, first);
  other.join();
  return ended;
}

/// Why a wait for `values` values of `part` ends without them.
std::string lost_while_receiving(ReplicaLinks& links, int part, std::size_t values) {
  std::vector<float> got(values);
  try {
    links.receive(part, got);
  } catch (const train::WorkerLost& lost) {
    return lost.what();
  }
  return "";
}

}  // namespace

TEST_CASE("messages of any length arrive whole and in order, and both workers leave in order") {
  const std::vector<std::size_t> lengths{1, 7, ReplicaExchange::kMostValues,
                                         ReplicaExchange::kMostValues + 1, 200'000};
  const Work asks = [&](ReplicaLinks& links) {
    for (float round = 1; round < 40; ++round)
      for (const std::size_t length : lengths) {
        std::vector<float> values(length, round);
        values.back() = static_cast<float>(length);
        links.send(1, values);
        links.send(1, std::vector<float>{round});
        std::vector<float> answer(2);
        links.receive(1, answer);
        CHECK(answer == std::vector<float>{static_cast<float>(length), round});
      }
    return Status();
  };
  const Work answers = [&](ReplicaLinks& links) {
    for (int round = 1; round < 40; ++round)
      for (const std::size_t length : lengths) {
        std::vector<float> values(length), number(1);
        links.receive(0, values);
        links.receive(0, number);
        links.send(0, std::vector<float>{values.back(), number[0]});
      }
    return Status();
  };
  for (const Status& ended : run_replica(asks, answers)) CHECK(ended.ok());
}

TEST_CASE("a worker that ends with an error ends the wait of the other, which says why") {
  std::string why;
  const auto ended = run_replica(
      [&](ReplicaLinks& links) {
        links.send(1, std::vector<float>{1});
        why = lost_while_receiving(links, 1, 3);
        return Status();
      },
      [](ReplicaLinks& links) {
        lost_while_receiving(links, 0, 1);  // the other has joined: it does not end while it joins
        return Status(Error{ErrorKind::interrupted, "it was stopped"});
      });
  CHECK(
      contains(why, "worker 0.0: replica 0 is no longer whole: worker 0.1 ended: it was stopped"));
  REQUIRE_FALSE(ended[0].ok());
  CHECK(ended[0].error().kind == ErrorKind::interrupted);
  REQUIRE_FALSE(ended[1].ok());
  CHECK(ended[1].error().message == "it was stopped");
}

TEST_CASE("a message of another length than is due ends the replica") {
  std::string why;
  const auto ended = run_replica(
      [](ReplicaLinks& links) {
        links.send(1, std::vector<float>(3));
        lost_while_receiving(links, 1, 1);
        return Status();
      },
      [&](ReplicaLinks& links) {
        why = lost_while_receiving(links, 0, 4);
        return Status();
      });
  CHECK(contains(why, "a message of 3 values of round 0 where 4 of round 0 were due"));
  CHECK_FALSE(ended[0].ok());
  CHECK_FALSE(ended[1].ok());
}

TEST_CASE("outputs that are not finite are not sent: the replica diverged") {
  const auto ended = run_replica(
      [](ReplicaLinks& links) {
        links.send(1, std::vector<float>{1, NAN});
        lost_while_receiving(links, 1, 1);
        return Status();
      },
      [](ReplicaLinks& links) {
        lost_while_receiving(links, 0, 2);
        return Status();
      });
  for (const Status& each : ended) {
    REQUIRE_FALSE(each.ok());
    CHECK(each.error().kind == ErrorKind::diverged);
    CHECK(contains(each.error().message, "replica 0 diverged"));
  }
}

TEST_CASE("workers agree on the first step that they train, while others compute or wait") {
  constexpr std::size_t kTrained = 300;
  const auto worker = [](ReplicaLinks& links, int part, bool joins,
                         std::vector<std::uint64_t>& trained) {
    links.begin(joins);
    for (std::uint64_t round = static_cast<std::uint64_t>(joins ? 7 * part : 0);
         trained.size() < kTrained; ++round) {
      const std::uint64_t step = 10 * round;
      if (!links.trains(step, 10)) {
        std::this_thread::yield();
        continue;
      }
      trained.push_back(step);
      // Longer than what a connection holds that nobody reads.
      std::vector<float> other(trained.size() == 1 ? 2'000'000 : 1);
      links.send(1 - part, std::vector<float>(other.size(), static_cast<float>(step)));
      links.receive(1 - part, other);
      CHECK(other.back() == static_cast<float>(step));
    }
    CHECK(links.is_whole());
    return Status();
  };
  for (const bool joins : {false, true}) {
    CAPTURE(joins);
    std::vector<std::uint64_t> first, second;
    for (const Status& ended :
         run_replica([&](ReplicaLinks& links) { return worker(links, 0, joins, first); },
                     [&](ReplicaLinks& links) { return worker(links, 1, joins, second); }))
      CHECK(ended.ok());
    CHECK(first == second);
    REQUIRE(first.size() == kTrained);
    CHECK((first.front() == 0) == !joins);
  }
}
