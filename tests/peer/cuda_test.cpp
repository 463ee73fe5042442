// Whole runs on an emulated GPU. Its kernels run on the CPU, and its memory cannot be read by the
// host, so that an access to a row without a copy ends the program.
#include <array>
#include <cmath>

#include "gossip/algorithm.hpp"
#include "gossip/codec.hpp"
#include "peer/log/metrics.hpp"
#include "tests/peer/cuda_test_util.hpp"

using namespace gossamer;
using namespace gossamer::peer;
using namespace gossamer::peer::testing;

namespace {

const Overrides kTopK{"algorithm.kind=choco", "codec.kind=topk"};

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
  const Overrides adam{"optimizer.kind=adam", "optimizer.epsilon=1e-4", "optimizer.rate=1e-3"},
      muon{"optimizer.kind=muon", "optimizer.epsilon=1e-4", "optimizer.rate=2e-3"};
  for (const auto& [model, optimizer] : {std::pair("softmax", momentum),
                                         {"mlp", momentum},
                                         {"cnn", momentum},
                                         {"mlp", adam},
                                         {"mlp", muon}}) {
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
  CHECK(decode_sketch(sketched.records("round").back()["sketch"]).size() == 1024);
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
