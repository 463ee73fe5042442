// The choice of the device, and runs for which a GPU has too little memory.
#include "peer/setup/device_choice.hpp"

#include "peer/setup/memory_check.hpp"
#include "tests/peer/cuda_test_util.hpp"

using namespace gossamer;
using namespace gossamer::peer;
using namespace gossamer::peer::testing;

namespace {

std::string run_refusal(const Overrides& overrides) {
  const Folder folder;
  auto setup = make_setup(configured(overrides));
  if (!setup.ok()) return setup.error().message;
  RunRequest request;
  request.folder = folder.path / "run";
  const auto outcome = run(*setup, request);
  REQUIRE_FALSE(outcome.ok());
  CHECK_FALSE(fs::exists(request.folder));
  return outcome.error().message;
}

DeviceChoice chosen(const std::string& name, const LocalRank& local_rank = {}) {
  LocalOptions local;
  local.device = name;
  local.threads = 1;
  auto choice = choose_device(local, local_rank);
  REQUIRE_MESSAGE(choice.ok(), (choice.ok() ? "" : choice.error().message));
  return std::move(choice).value();
}

}  // namespace

TEST_CASE(
    "too little memory: the error says how much is needed, for how many peers, and how many would "
    "fit") {
  emulation::Settings small;
  small.memory_per_gpu = std::size_t{8} << 20;
  const emulation::With with(small);
  const std::string message = run_refusal(
      kOnGpu + Overrides{"run.peers=20", "algorithm.kind=consensus", "algorithm.length=100000"});
  CHECK(contains(message, "out of memory on cuda:0"));
  CHECK(contains(message, "20 peers need"));
  CHECK(contains(message, "would fit"));

  small.gpus = 3;  // 20 peers are 6 or 7 on a GPU
  const emulation::With with_three(small);
  const Overrides network =
      kOnGpu + Overrides{"run.peers=20", "algorithm.kind=consensus", "algorithm.length=150000"};
  CHECK(contains(run_refusal(network),
                 "7 of the 20 peers are on one GPU and need 0.01 GiB (2 rows of 150000 values"));
  CHECK(contains(run_refusal(network), "18 peers would fit on all GPUs"));
  const Setup setup = set_up(network);
  CHECK(check_memory(setup, 18).ok());
  CHECK_FALSE(check_memory(setup, 19).ok());
  const Setup ruled = set_up(network + Overrides{"mixing.rule=median"});  // and two gathered rows
  CHECK(check_memory(ruled, 9).ok());
  CHECK_FALSE(check_memory(ruled, 10).ok());
  // With 10 hostile peers of 20, a message for each of 2 neighbours and one that is made: 2 rows a
  // peer.
  const Setup attacked = set_up(
      network + Overrides{"attack.kind=sign_flip", "attack.peers=[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"});
  CHECK(check_memory(attacked, 9).ok());
  CHECK_FALSE(check_memory(attacked, 10).ok());
}

TEST_CASE("the precision of matrix products is a GPU's, and its text names it") {
  for (const char* precision : {"tf32", "bf16"}) {
    LocalOptions local;
    local.device = "cuda";
    local.matmul_precision = precision;
    const auto choice = choose_device(local, {});
    REQUIRE(choice.ok());
    CHECK(choice->device->description().ends_with(fmt::format("matrix products in {}", precision)));
    local.device = "cpu";
    const auto refused = choose_device(local, {});
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().message ==
          fmt::format("local.matmul_precision: the CPU computes in float32, and not in {}; set "
                      "local.device = cuda (or auto), or leave it out",
                      precision));
  }
}

TEST_CASE(
    "choice of the device: an available GPU, the CPU with a note, or an error with the reason") {
  CHECK(contains(chosen("cpu").device->description(), "cpu, 1 thread"));
  CHECK(contains(chosen("auto").device->description(), "cuda:0"));
  CHECK(chosen("auto").note.empty());
  CHECK(contains(run_refusal({"local.device=cuda:1"}), "there is one GPU here (cuda:0)"));
  CHECK(contains(run_refusal({"local.device=gpu"}),
                 "local.device: 'gpu' is not one of auto, cpu, cuda"));
  CHECK(contains(run_refusal({"local.device=cuda:x"}), "local.device: 'cuda:x'"));

  emulation::Settings settings;
  settings.gpus = 3;
  {
    const emulation::With three(settings);
    CHECK(contains(chosen("cuda:2").device->description(), "cuda:2, Emulated GPU, "));
    for (const char* name : {"cuda", "auto"}) {  // alone: all; else processes share the GPUs
      CAPTURE(name);
      CHECK(contains(chosen(name).device->description(), "cuda:0-2, 3 × Emulated GPU, "));
      CHECK(contains(chosen(name, {.hosted = {0, 1}}).device->description(), "cuda:0-1, 2 × "));
      CHECK(contains(chosen(name, {.rank = 1, .processes = 2}).device->description(),
                     "cuda:1-2, 2 × "));
      CHECK(contains(chosen(name, {.rank = 4, .processes = 5}).device->description(), "cuda:1, "));
      CHECK(contains(chosen(name, {.rank = 2, .processes = 0}).device->description(), "cuda:2, "));
      CHECK(chosen(name).note.empty());
    }
    CHECK(
        contains(run_refusal({"local.device=cuda:3"}), "there are 3 GPUs here (cuda:0 to cuda:2)"));
  }
  settings.peer_access = false;
  {
    const emulation::With apart(settings);
    const DeviceChoice choice = chosen("cuda");
    CHECK(contains(choice.device->description(), "cuda:0, "));
    CHECK(contains(
        choice.note,
        "local.device = cuda: cuda:0-2 cannot access each other's memory; using only cuda:0"));
    CHECK(chosen("cuda:1").note.empty());
    CHECK(chosen("auto", {.rank = 1, .processes = 3}).note.empty());
  }
  const auto without = [&](auto change, const std::string& words) {
    emulation::Settings lacking;
    change(lacking);
    const emulation::With with(lacking);
    const DeviceChoice choice = chosen("auto");
    CHECK(choice.device->host_accessible());
    CHECK(contains(choice.note, "using the CPU"));
    CHECK(contains(choice.note, words));
    CHECK(choice.note.find('\n') == std::string::npos);
    CHECK(contains(run_refusal({"local.device=cuda"}), words));
  };
  without([](auto& s) { s.gpus = 0; }, "no NVIDIA GPU");
  without([](auto& s) { s.driver_version = 0; }, "driver");
  without([](auto& s) { s.driver_version = 11000; }, "driver");
  without([](auto& s) { s.blas_installed = false; }, "cuBLAS");
}
