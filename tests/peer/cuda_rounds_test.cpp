// Rounds and several devices of whole runs on emulated GPUs: what a round asks of the host, and the
// bits of peers on two and three GPUs.
#include <algorithm>
#include <array>
#include <cmath>

#include "gossip/codec.hpp"
#include "tests/peer/cuda_test_util.hpp"

using namespace gossamer;
using namespace gossamer::peer;
using namespace gossamer::peer::testing;

namespace {

/// The CUDA calls of twenty rounds without records: those of a run of thirty rounds minus those of
/// a run of ten. Each run releases everything that it allocated.
emulation::Counts asked_by_rounds(const Overrides& overrides, int gpus = 1) {
  const Folder folder;
  const emulation::With with({.gpus = gpus});
  const auto asked_by_run = [&](int count) {
    const auto before = emulation::counts();
    const auto held = emulation::holdings();
    run_in(folder.path / std::to_string(count), kDigits + kOnGpu + rounds(count) + overrides);
    if (count > 10)
      CHECK(emulation::holdings() == held);  // the first run of a program keeps what all share
    const auto after = emulation::counts();
    return std::array{
        after.synchronisations - before.synchronisations, after.captures - before.captures,
        after.graph_launches - before.graph_launches, after.bytes_down - before.bytes_down};
  };
  const auto few = asked_by_run(10), many = asked_by_run(30);
  emulation::Counts asked;
  asked.synchronisations = many[0] - few[0];
  asked.captures = many[1] - few[1];
  asked.graph_launches = many[2] - few[2];
  asked.bytes_down = many[3] - few[3];
  return asked;
}

/// Checks that the host never waited, captured no graph, and downloaded no byte. If peers end their
/// rounds independently, the number of waits at the end differs between runs, and is only checked
/// to be smaller than the number of rounds. Where the peers that train are drawn in each round, a
/// set of them that is new has a graph of its own.
void check_rounds_stay_on_the_gpu(const Overrides& overrides, int gpus = 1) {
  CAPTURE(gpus);
  const emulation::Counts asked = asked_by_rounds(overrides, gpus);
  const bool end_together =
      make_setup(configured(kDigits + overrides)).value().algorithm->requirements().lockstep;
  CHECK(std::abs(static_cast<std::int64_t>(asked.synchronisations)) < (end_together ? 1 : 20));
  const bool drawn = std::ranges::count(overrides, "algorithm.kind=teleportation") > 0;
  CHECK(asked.captures <= (drawn ? 20 : 0));
  CHECK(asked.bytes_down == 0);
}

}  // namespace

TEST_CASE(
    "rounds without records never wait for the GPU, and each step is a captured graph: every "
    "algorithm") {
  for (const Overrides& algorithm : algorithms()) {
    CAPTURE(algorithm.front());
    check_rounds_stay_on_the_gpu(fitted(kDigits + algorithm));
  }
  CHECK(asked_by_rounds({}).graph_launches >= 20);
  // One of seven peers has no partner. Its two buffers are swapped nevertheless, so that the
  // captured graphs can be reused.
  check_rounds_stay_on_the_gpu({"topology.kind=random_matching", "run.peers=7"});
  CHECK(asked_by_rounds({"topology.kind=random_matching", "run.peers=7"}).graph_launches >= 20);
}

TEST_CASE("rounds without records never wait for the GPU: every codec") {
  for (const gossip::CodecKind& codec : gossip::codecs::catalog()) {
    CAPTURE(codec.name);
    const Overrides coded{"codec.kind=" + codec.name};
    for (const int gpus : {1, 3})
      check_rounds_stay_on_the_gpu(coded + Overrides{"algorithm.kind=choco"}, gpus);
    if (make_setup(configured(coded)).ok()) check_rounds_stay_on_the_gpu(coded);
  }
}

TEST_CASE(
    "peers on several GPUs: bit-identical to one GPU for any order of the GPUs, for every "
    "algorithm") {
  const Folder folder;
  int made = 0;
  for (const Overrides& algorithm : algorithms()) {
    CAPTURE(algorithm.front());
    const Overrides problem = fitted(kDigits + rounds(4) + algorithm + kOnGpu);
    const std::string expected = run_in(folder.path / std::to_string(made++), problem).hash();
    for (const int gpus : {2, 3}) {
      CAPTURE(gpus);
      const emulation::With with(
          {.gpus = gpus, .seed = static_cast<std::uint64_t>(gpus), .late = gpus == 3});
      const auto before = emulation::counts();
      const Left left = run_in(folder.path / std::to_string(made++), problem);
      CHECK(left.hash() == expected);
      const bool one_node = set_up(problem).algorithm->requirements().one_node;
      for (int gpu = 0; gpu < gpus; ++gpu) {
        const auto place = static_cast<std::size_t>(gpu);
        CHECK((emulation::counts().kernels_of[place] > before.kernels_of[place]) ==
              (gpu == 0 || !one_node));
      }
    }
  }
}

TEST_CASE("peers on several GPUs: records and metrics of whole runs") {
  const Folder folder;
  const Overrides problem =
      kDigits + rounds(6) + kOnGpu + Overrides{"model.kind=mlp",         "model.hidden=[20]",
                                               "topology.kind=complete", "log.every=2",
                                               "log.sketch=on",          "optimizer.momentum=0.9"};
  const Overrides async{"algorithm.policy=async", "sim.latency_ms=2", "sim.compute_ms=1"};
  RunRequest misaligned;
  misaligned.row_offset = 1;
  const Left one = run_in(folder.path / "1", problem),
             one_async = run_in(folder.path / "1-async", problem + async);
  for (const int gpus : {2, 3}) {
    CAPTURE(gpus);
    const emulation::With with({.gpus = gpus});
    const auto in = [&](const char* name) { return folder.path / (std::to_string(gpus) + name); };
    const Left many = run_in(in(""), problem);
    CHECK(many.hash() == one.hash());
    CHECK(contains(many.log.header["device"], "cuda:0-" + std::to_string(gpus - 1)));
    CHECK(many.summary["final"] == one.summary["final"]);
    const auto figures = [](const Left& left) {
      std::vector<Json> all;
      for (const Json& record : left.records("round"))
        for (const char* key : {"peer", "train_loss", "test_loss", "test_accuracy", "sketch"})
          all.push_back(record[key]);
      return all;
    };
    CHECK(figures(many) == figures(one));
    CHECK(run_in(in("-misaligned"), problem, misaligned).hash() == one.hash());
    CHECK(run_in(in("-async"), problem + async).hash() == one_async.hash());
  }
}

TEST_CASE(
    "peers on several GPUs: rounds without records never wait, and a run releases all resources") {
  check_rounds_stay_on_the_gpu({}, 3);
  CHECK(asked_by_rounds({}, 3).graph_launches >= 3 * 20);
}

TEST_CASE("peers on several GPUs: a fault on one of them ends the run, and the error names it") {
  const Folder folder;
  const emulation::With with({.gpus = 2});
  const Setup setup = set_up(kDigits + kOnGpu + rounds(12) + Overrides{"log.every=10"});
  RunRequest request;
  request.folder = folder.path / "run";
  request.on_progress =
      [](const Json& record) {  // the next step's graphs: GPU 0's is well, GPU 1's is not
        if (record["round"] == 10) emulation::fail("cudaGraphLaunch", 719, 1);
      };
  std::string message;
  try {
    static_cast<void>(run(setup, std::move(request)));
  } catch (const std::exception& error) {
    message = error.what();
  }
  CHECK(contains(message, "cuda:1: cudaGraphLaunch: unspecified launch failure"));
}
