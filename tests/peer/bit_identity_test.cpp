// Bit identity of runs in one process: a synchronous run has the same bits under every setting of
// threads, alignment, chunks, latency and bandwidth.
#include <algorithm>

#include "tests/peer/test_util.hpp"
#include "topology/kind.hpp"

using namespace gossamer;
using namespace gossamer::peer;
using namespace gossamer::peer::testing;

namespace {

/// A number of peers for which the kind can be built: 9, or else 8.
std::string peers_for(const topology::TopologyKind& kind) {
  const bool nine = make_setup(configured({"algorithm.kind=consensus", "topology.kind=" + kind.name,
                                           "run.peers=9"}))
                        .ok();
  return nine ? "run.peers=9" : "run.peers=8";
}

}  // namespace

TEST_CASE(
    "bit-identical results for any threads, alignment, chunk size, latency and bandwidth: every "
    "algorithm, every topology") {
  const Folder folder;
  int made = 0;
  const auto hash_of = [&](const Overrides& overrides, std::size_t row_offset = 0) {
    RunRequest request;
    request.row_offset = row_offset;
    const Left left = run_in(folder.path / std::to_string(made++), overrides, request);
    CHECK_FALSE(left.stopped);
    return left.hash();
  };
  const Overrides uneven{"sim.latency_spread=1", "sim.bandwidth_spread=1", "sim.jitter_ms=5",
                         "sim.compute_ms=2", "sim.compute_spread=1"};
  // Every algorithm on the static and changing graphs that it accepts, and every graph with one
  // algorithm.
  const auto is_paired = [](const Overrides& algorithm, const std::string& graph) {
    if (algorithm == Overrides{"algorithm.kind=dpsgd"} || graph == "one_peer_exponential")
      return true;
    return std::ranges::find(fitting_kinds(), graph) != fitting_kinds().end();
  };
  for (const Overrides& algorithm : algorithms_of_the_catalog()) {
    int fits = 0;
    for (const topology::TopologyKind& kind : topology::kinds::catalog())
      for (const Problem& problem : problems()) {
        if (kind.needs_values) continue;
        if (!is_paired(algorithm, kind.name)) continue;
        if (!trains(algorithm) && &problem != &problems().front()) continue;
        const Overrides base = algorithm + (trains(algorithm) ? problem.overrides : Overrides{}) +
                               Overrides{"topology.kind=" + kind.name, peers_for(kind),
                                         "run.rounds=3", "log.every=0", "local.threads=1"};
        CAPTURE(fmt::format("{}", fmt::join(base, " ")));
        if (const auto setup = make_setup(configured(base)); !setup.ok()) {
          CHECK(setup.error().message.starts_with("topology."));
          continue;
        }
        ++fits;
        const std::string hash = hash_of(base);
        if (algorithm.front() == "algorithm.kind=ad_psgd") {
          CHECK(hash_of(base + Overrides{"local.threads=2"}, 1) == hash);
          CHECK(hash_of(base + uneven) == hash_of(base + uneven + Overrides{"local.threads=3"}, 1));
          continue;
        }
        CHECK(hash_of(base + Overrides{"local.threads=2", "net.chunk_kib=4", "sim.latency_ms=3",
                                       "sim.compute_ms=2"}) == hash);
        const Overrides slow{"local.threads=3", "sim.bandwidth_mbit_s=1", "sim.latency_ms=1",
                             "sim.uplink_mbit_s=2", "sim.downlink_mbit_s=3"};
        CHECK(hash_of(base + slow, 1) == hash);
        // Only the results of an asynchronous server depend on the order of arrival.
        if (!by_the_clock(algorithm)) CHECK(hash_of(base + slow + uneven) == hash);
        CHECK(hash_of(base + Overrides{"run.seed=1"}) != hash);
      }
    CHECK(fits > 0);
  }
}

TEST_CASE("bit-identical results with many chunk sizes and larger models") {
  const Folder folder;
  for (const Overrides& optimizer :
       {Overrides{"optimizer.nesterov=true", "optimizer.momentum=0.9"},
        Overrides{"optimizer.kind=adam", "optimizer.schedule=cosine"},
        Overrides{"optimizer.kind=muon", "optimizer.warmup_steps=3"}}) {
    const Overrides base = Overrides{"model.kind=mlp", "model.hidden=[40]", "run.peers=4",
                                     "run.rounds=3", "algorithm.local_steps=2"} +
                           optimizer;
    const fs::path here = folder.path / optimizer.front();
    CAPTURE(optimizer.front());
    fs::create_directory(here);
    const std::string hash = run_in(here / "whole", base).hash();
    for (int kib : {4, 5, 9, 4096})
      CHECK(
          run_in(here / std::to_string(kib), base + Overrides{fmt::format("net.chunk_kib={}", kib)})
              .hash() == hash);
    RunRequest misaligned;
    misaligned.row_offset = 1;
    CHECK(run_in(here / "misaligned", base + Overrides{"local.threads=3"}, misaligned).hash() ==
          hash);
  }
}

TEST_CASE("Muon: each algorithm of the catalog runs with it, or refuses it with a reason") {
  const Folder folder;
  int made = 0;
  for (const Overrides& algorithm : algorithms_of_the_catalog()) {
    if (!trains(algorithm)) continue;
    CAPTURE(fmt::format("{}", fmt::join(algorithm, " ")));
    const Overrides base =
        fitted(algorithm + Overrides{"run.peers=6", "run.rounds=2"}) +
        Overrides{"model.kind=mlp", "model.hidden=[7]", "data.batch=8", "optimizer.kind=muon"};
    const auto setup = make_setup(configured(base));
    if (setup.ok()) {
      CHECK_FALSE(run_in(folder.path / std::to_string(made++), base).stopped);
      CHECK(setup->algorithm->requirements().servers == 0);
      continue;
    }
    const std::string& message = setup.error().message;
    CAPTURE(message);
    CHECK((message.find("linear in the gradient") != std::string::npos ||
           message.starts_with("optimizer.kind: 'muon' steps with whole matrices, and the servers "
                               "of ")));
  }
  CHECK(made > 8);
}

TEST_CASE(
    "Adam: each algorithm of the catalog is bit-identical with it, or refuses it with a reason") {
  const Folder folder;
  int made = 0;
  for (const Overrides& algorithm : algorithms_of_the_catalog()) {
    if (!trains(algorithm)) continue;
    CAPTURE(fmt::format("{}", fmt::join(algorithm, " ")));
    const Overrides base = fitted(algorithm + Overrides{"run.peers=6", "run.rounds=3"}) +
                           Overrides{"optimizer.kind=adam"};
    const auto setup = make_setup(configured(base));
    const std::string name = algorithm.front();
    const bool refused = name.ends_with("d2") || name.ends_with("extra") ||
                         name.ends_with("qg_momentum") || name.ends_with("dmsgd") ||
                         name.ends_with("decentlam") || name.ends_with("fedavg") ||
                         name.ends_with("async_server");
    CHECK(setup.ok() == !refused);
    if (!setup.ok()) {
      CHECK(setup.error().kind == ErrorKind::invalid);
      CHECK(setup.error().message.find("linear in the gradient") != std::string::npos);
      CHECK(setup.error().message.find("set optimizer.kind = sgd") != std::string::npos);
      continue;
    }
    const auto hash_of = [&](const Overrides& overrides, std::size_t row_offset = 0) {
      RunRequest request;
      request.row_offset = row_offset;
      return run_in(folder.path / std::to_string(made++), base + overrides, request).hash();
    };
    const std::string hash = hash_of({});
    if (by_the_clock(algorithm)) CHECK(hash_of({"local.threads=3"}, 1) == hash);
    else CHECK(hash_of({"local.threads=3", "net.chunk_kib=4", "sim.latency_ms=3"}, 1) == hash);
    CHECK(hash_of({"optimizer.beta2=0.9"}) != hash);
  }
}
