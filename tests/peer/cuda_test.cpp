// Whole runs on an emulated GPU. Its kernels run on the CPU, and its memory cannot be read by the
// host, so that an access to a row without a copy ends the program.
#include <array>
#include <cmath>

#include "gossip/algorithm.hpp"
#include "gossip/codec.hpp"
#include "tests/peer/cuda_test_util.hpp"

using namespace gossamer;
using namespace gossamer::peer;
using namespace gossamer::peer::testing;

namespace {

/// Each algorithm of the catalog; algorithms with an order in both orders.
std::vector<Overrides> algorithms() {
  std::vector<Overrides> all;
  for (const gossip::AlgorithmKind& kind : gossip::algorithms::catalog()) {
    all.push_back({"algorithm.kind=" + kind.name});
    for (const ParameterSpec& spec : kind.parameters)
      if (spec.name == "order") all.push_back(all.back() + Overrides{"algorithm.order=awc"});
      else if (spec.name == "local_steps") all.back().push_back("algorithm.local_steps=2");
  }
  return all;
}

const Overrides kTopK{"algorithm.kind=choco", "codec.kind=topk"};

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
/// to be smaller than the number of rounds.
void check_rounds_stay_on_the_gpu(const Overrides& overrides, int gpus = 1) {
  CAPTURE(gpus);
  const emulation::Counts asked = asked_by_rounds(overrides, gpus);
  const bool end_together =
      make_setup(configured(kDigits + overrides)).value().algorithm->requirements().lockstep;
  CHECK(std::abs(static_cast<std::int64_t>(asked.synchronisations)) < (end_together ? 1 : 20));
  CHECK(asked.captures == 0);
  CHECK(asked.bytes_down == 0);
}

/// A codec that damages the messages of one peer in one round when neighbours read them, as if the
/// peer had sent them damaged.
class OnceUnreadable final : public gossip::Codec {
 public:
  OnceUnreadable(std::unique_ptr<gossip::Codec> codec, gpu::Device& device, int peer,
                 gossip::Round round)
      : codec_(std::move(codec)), device_(device), peer_(peer), round_(round) {}
  gossip::Fidelity fidelity() const override { return codec_->fidelity(); }
  std::size_t words(std::size_t length) const override { return codec_->words(length); }
  std::size_t first_beyond(const gossip::MessagePart& part, float largest) const override {
    return codec_->first_beyond(part, largest);
  }
  void encode(gpu::Device& device, std::span<const gossip::EncodeRequest> requests) const override {
    codec_->encode(device, requests);
  }
  void decode(gpu::Device& device, std::span<const gossip::DecodeRequest> requests) const override {
    for (const gossip::DecodeRequest& request : requests)
      if (request.peer == peer_ && request.round == round_ &&
          std::exchange(read_by_itself_, true)) {
        const std::uint32_t beyond = 0xFFFFFFF0;
        float* last = const_cast<float*>(request.message) + words(request.length) - 1;
        device_.upload(last, &beyond, sizeof beyond);
      }
    codec_->decode(device, requests);
  }
  const char* refusal() const override { return codec_->refusal(); }

 private:
  std::unique_ptr<gossip::Codec> codec_;
  gpu::Device& device_;
  int peer_;
  gossip::Round round_;
  mutable bool read_by_itself_ = false;
};

}  // namespace

TEST_CASE("fifty rounds on a GPU and on the CPU: losses agree within 1e-3, for every model") {
  const Folder folder;
  const Overrides momentum{"optimizer.momentum=0.9", "optimizer.weight_decay=1e-4",
                           "optimizer.rate=0.01"};
  const Overrides adam{"optimizer.kind=adam", "optimizer.epsilon=1e-4", "optimizer.rate=1e-3"};
  for (const auto& [model, optimizer] :
       {std::pair("softmax", momentum), {"mlp", momentum}, {"cnn", momentum}, {"mlp", adam}}) {
    CAPTURE(model);
    CAPTURE(optimizer.front());
    const bool large = std::string(model) == "cnn";
    const std::string name = model + optimizer.front();
    const Overrides problem =
        kDigits + rounds(50) +
        Overrides{std::string("model.kind=") + model, large ? "run.peers=2" : "run.peers=8"} +
        optimizer;
    const Left cpu = run_in(folder.path / (name + "-cpu"), problem);
    const Left gpu = run_in(folder.path / (name + "-GPU"), problem + kOnGpu);
    for (const char* figure : {"train_loss", "test_loss"}) {
      const double expected = cpu.summary["final"][figure]["mean"];
      CHECK(gpu.summary["final"][figure]["mean"].get<double>() ==
            doctest::Approx(expected).epsilon(1e-3));
    }
    CHECK(gpu.summary["final"]["consensus_distance"].get<double>() ==
          doctest::Approx(cpu.summary["final"]["consensus_distance"].get<double>()).epsilon(1e-2));
  }
}

TEST_CASE(
    "two runs on a GPU are bit-identical for any order of its threads and streams: every "
    "algorithm") {
  const Folder folder;
  int made = 0;
  emulation::Settings shuffled, late;
  shuffled.order = emulation::Order::shuffled;
  late.late = true;
  for (const Overrides& algorithm : algorithms()) {
    CAPTURE(algorithm.front());
    const Overrides problem = fitted(kDigits + rounds(5) + algorithm + kOnGpu);
    const auto hash = [&] { return run_in(folder.path / std::to_string(made++), problem).hash(); };
    const std::string expected = hash();
    {
      const emulation::With with(shuffled);
      CHECK(hash() == expected);
    }
    const emulation::With with(late);
    CHECK(hash() == expected);
  }
}

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
    "an encoded row that cannot be decoded ends the run by the next record, and the error names "
    "its sender") {
  for (const int gpus : {1, 2})
    for (const bool late : {false, true}) {
      CAPTURE(gpus);
      CAPTURE(late);
      const emulation::With with({.gpus = gpus, .late = late});
      const Folder folder;
      Setup setup = set_up(kDigits + kOnGpu + rounds(40) + kTopK + Overrides{"log.every=20"});
      setup.codec = std::make_unique<OnceUnreadable>(std::move(setup.codec), *setup.device, 6, 5);
      RunRequest request;
      request.folder = folder.path / "run";
      const auto outcome = run(setup, std::move(request));
      REQUIRE(outcome.ok());
      REQUIRE(outcome->stopped);
      CHECK(outcome->stopped->kind == ErrorKind::lost_peer);
      CHECK(contains(outcome->stopped->message, "peer 6 broke the protocol towards peer "));
      CHECK(contains(outcome->stopped->message, " (round 5, channel "));
      CHECK(contains(outcome->stopped->message,
                     "): a coded row that cannot be read: its indices do not ascend"));
      CHECK(outcome->summary["rounds"] >= 5);
      CHECK(outcome->summary["rounds"] <= 20);
    }
}

TEST_CASE(
    "a peer that diverges on a GPU is named as on the CPU, and no result computed from its row is "
    "kept") {
  const Folder folder;
  int made = 0;
  // One of four classes has features that make the peers with it exceed the bound: by so much that
  // their neighbours' rows exceed it too after mixing, or by so little that they do not.
  for (const double huge : {1e22, 1e20}) {
    std::string table = "f,g,class\n";
    for (int i = 0; i < 160; ++i)
      table += fmt::format("{},{},{}\n",
                           i % 8 == 3   ? huge
                           : i % 8 == 7 ? -huge
                                        : 1.0,
                           1 + i % 3, i % 4);
    const Overrides problem =
        Overrides{"data.kind=csv",        "data.path=" + written(folder.path / "table.csv", table),
                  "data.target=class",    "data.standardise=false",
                  "data.partition=label", "data.classes_per_peer=1",
                  "data.batch=8",         "run.peers=4",
                  "topology.kind=ring",   "optimizer.rate=0.05",
                  "log.every=1",          "checkpoint.every=1"} +
        rounds(20);
    for (const Overrides& how : {Overrides{},
                                 {"algorithm.policy=async"},
                                 {"algorithm.policy=async", "sim.latency_ms=2"},
                                 {"algorithm.policy=stale"},
                                 {"algorithm.policy=deadline"},
                                 {"codec.kind=int8"},
                                 {"algorithm.order=awc"},
                                 {"algorithm.kind=gradient_tracking"}}) {
      const auto stopped = [&](const Overrides& device) {
        const fs::path path = folder.path / std::to_string(made++);
        const Left left = run_in(path, problem + how + device);
        REQUIRE(left.stopped);
        CHECK(left.stopped->kind == ErrorKind::diverged);
        CHECK(contains(left.stopped->message, "; a smaller optimizer.rate than"));
        const int victim = std::stoi(left.stopped->message.substr(std::string("peer ").size()));
        for (const Json& record : left.records("round"))
          CHECK((record["peer"] == victim ||
                 record["test_loss"] < 10 * huge));  // their own rows are far below 1
        for (const auto& file :
             fs::recursive_directory_iterator(path))  // the last rows are what they are
          if (file.path().extension() == ".safetensors" &&
              file.path().filename() != "final-0.safetensors") {
            auto tensors = read_safetensors(file.path());
            REQUIRE(tensors.ok());
            for (const Tensor& tensor : tensors->tensors)
              if (!tensor.name.starts_with(fmt::format("peer{}.", victim)))
                for (const float value : tensor.values) CHECK(std::abs(value) < 1e3F);
          }
        return left.stopped->message.substr(0, left.stopped->message.find(','));
      };
      CAPTURE(huge);
      CAPTURE(how.empty() ? std::string("dpsgd") : how.front());
      const std::string expected = stopped({"local.device=cpu"});
      CHECK(contains(expected, " diverged: "));
      for (const int gpus : {1, 2, 3})
        for (const std::uint64_t seed : {1, 2, 3}) {
          CAPTURE(gpus);
          CAPTURE(seed);
          const emulation::With with({.gpus = gpus, .seed = seed, .late = seed > 1});
          CHECK(stopped(kOnGpu) == expected);
        }
    }
  }
}

TEST_CASE("latencies, asynchronous exchange, sketches and a misaligned row on a GPU") {
  const Folder folder;
  const Overrides problem = kDigits + kOnGpu + rounds(6);
  const std::string hash = run_in(folder.path / "plain", problem).hash();
  RunRequest misaligned;
  misaligned.row_offset = 1;
  CHECK(run_in(folder.path / "misaligned", problem, misaligned).hash() == hash);
  CHECK(run_in(folder.path / "slow",
               problem + Overrides{"sim.latency_ms=3", "sim.compute_ms=1", "net.chunk_kib=4"})
            .hash() == hash);
  const Left sketched =
      run_in(folder.path / "sketched", problem + Overrides{"log.sketch=on", "log.every=2"});
  CHECK(sketched.hash() == hash);
  CHECK(sketched.records("round").back()["sketch"].size() == 1024);
  const Left async = run_in(folder.path / "async",
                            problem + Overrides{"algorithm.policy=async", "sim.latency_ms=2"});
  CHECK_FALSE(async.stopped);
}

TEST_CASE("a finished run has released all resources") {
  const Folder folder;
  run_in(folder.path / "warm", kDigits + kOnGpu + rounds(2));
  const auto before = emulation::holdings();
  run_in(folder.path / "a", kDigits + kOnGpu + rounds(2) + Overrides{"algorithm.order=awc"});
  CHECK(emulation::holdings() == before);
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
