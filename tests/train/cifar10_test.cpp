// CIFAR-10's binary files: reading, normalisation, errors of damaged files, and a network that
// learns from them.
#include <cmath>
#include <numeric>

#include "base/rows.hpp"
#include "gpu/cpu_device.hpp"
#include "tests/train/data_test_util.hpp"
#include "train/learner.hpp"

using namespace gossamer;
using namespace gossamer::train;

namespace {

constexpr std::size_t kRecord = 3073;

/// `count` records whose labels count up from `first`; class k's picture is bright where the
/// pixel's number is k modulo 10, red brightest.
Bytes records(std::size_t count, int first = 0) {
  Bytes bytes;
  for (std::size_t i = 0; i < count; ++i) {
    const int label = static_cast<int>(static_cast<std::size_t>(first) + i) % 10;
    bytes.push_back(static_cast<unsigned char>(label));
    for (int c = 0; c < 3; ++c)
      for (int p = 0; p < 1024; ++p)
        bytes.push_back(static_cast<unsigned char>(p % 10 == label ? 250 - 50 * c : 10));
  }
  return bytes;
}

/// Six files, the training ones with 4, 5, … 8 records.
void write_files(Folder& folder, const std::string& inner = "") {
  for (int k = 1; k <= 5; ++k)
    folder.file(inner + "data_batch_" + std::to_string(k) + ".bin",
                records(3 + static_cast<std::size_t>(k), k));
  folder.file(inner + "test_batch.bin", records(6));
}

}  // namespace

TEST_CASE("the six files are 3 × 32 × 32 images in order, each channel normalised") {
  Folder folder("cifar10");
  write_files(folder);
  const Dataset data = folder.good();
  CHECK(data.name == "cifar10");
  CHECK(data.channels == 3);
  CHECK(data.height == 32);
  CHECK(data.width == 32);
  CHECK(data.classes == 10);
  CHECK(data.train_count == 4 + 5 + 6 + 7 + 8);
  CHECK(data.test_count() == 6);
  REQUIRE(data.features.size() == 36 * 3072);
  CHECK(std::vector(data.labels.begin(), data.labels.begin() + 6) ==
        std::vector<std::int32_t>{1, 2, 3, 4, 2, 3});
  CHECK(data.labels[30] == 0);
  // Sample 1, of class 2: its pixel 2 is bright, its pixel 3 dark.
  const float* sample = data.features.data() + 3072;
  CHECK(sample[2] == doctest::Approx((250 / 255.0 - 0.4914) / 0.2470));
  CHECK(sample[1024 + 2] == doctest::Approx((200 / 255.0 - 0.4822) / 0.2435));
  CHECK(sample[2048 + 2] == doctest::Approx((150 / 255.0 - 0.4465) / 0.2616));
  CHECK(sample[2048 + 3] == doctest::Approx((10 / 255.0 - 0.4465) / 0.2616));
}

TEST_CASE("the folder above, as the archive unpacks, is found too; counts take the first samples") {
  Folder folder("cifar10");
  write_files(folder, "cifar-10-batches-bin/");
  const Dataset all = folder.good(),
                part = folder.good({{"train_count", number(6)}, {"test_count", number(2)}});
  CHECK(all.count == 36);
  CHECK(part.train_count == 6);
  CHECK(part.test_count() == 2);
  CHECK(std::equal(part.features.begin(), part.features.begin() + 6 * 3072, all.features.begin()));
  CHECK(std::equal(part.features.begin() + 6 * 3072, part.features.end(),
                   all.features.begin() + 30 * 3072));
  CHECK(contains(folder.refusal({{"train_count", number(31)}}),
                 "data.train_count: 31 samples, and the files have 30"));
  CHECK(contains(folder.refusal({{"test_count", number(7)}}),
                 "data.test_count: 7 samples, and the files have 6"));
}

TEST_CASE("errors name the file, and the source of CIFAR-10") {
  Folder folder("cifar10");
  const auto refused = [&](const std::string& words) {
    const std::string message = folder.refusal();
    return contains(message, words) && contains(message, "cs.toronto.edu/~kriz/cifar");
  };
  CHECK(contains(folder.refusal({{"path", text("")}}), "data.path: empty"));
  CHECK(refused(folder.path("data_batch_1.bin") + ": No such file"));
  write_files(folder);
  Bytes cut = records(5);
  cut.pop_back();
  folder.file("data_batch_3.bin", cut);
  CHECK(refused(folder.path("data_batch_3.bin") +
                ": 15364 bytes, which is no whole number of records of 3073"));
  folder.file("data_batch_3.bin", Bytes());
  CHECK(refused("data_batch_3.bin: 0 bytes"));
  Bytes other = records(5);
  other[2 * kRecord] = 10;
  folder.file("data_batch_3.bin", other);
  CHECK(refused("data_batch_3.bin: record 2 has label 10"));
  folder.file("data_batch_3.bin", records(5));
  fs::remove(folder.path("test_batch.bin"));
  CHECK(refused("test_batch.bin: No such file"));
  CHECK(contains(folder.refusal({{"train_counts", number(1)}}), "data.train_counts"));
}

TEST_CASE("the small convolutional network learns such images") {
  Folder folder("cifar10");
  write_files(folder);
  LearnerRequest request;
  request.data = std::make_shared<Dataset>(folder.good());
  request.shards.emplace_back(request.data->train_count);
  std::iota(request.shards[0].begin(), request.shards[0].end(), 0U);
  const Dataset& data = *request.data;
  auto model = make_model("cnn", {data.channels, data.height, data.width, data.classes}, {});
  REQUIRE(model.ok());
  request.model = *model;
  request.sampling.batch = 10;
  const auto adam = make_optimizer("adam", {{"rate", 0.01}}, {});
  REQUIRE(adam.ok());
  request.optimizer = *adam;
  gpu::CpuDevice device(1);
  const auto learner = make_learner<float>(std::move(request), device);
  REQUIRE(learner.ok());
  const std::size_t d = (*learner)->parameters();
  CHECK(d == (75 * 8 + 8 + 16) + (25 * 8 * 16 + 16 + 32) + (8 * 8 * 16 * 10 + 10));
  Rows<float> rows(4, d);
  (*learner)->initialise(0, rows.row(0));
  double loss = 0;
  StepRequest<float> step{.steps = 90,
                          .parameters = rows.row(0).data(),
                          .state = {rows.row(1).data(), rows.row(2).data()},
                          .gradient = rows.row(3).data(),
                          .loss = &loss};
  EvaluateRequest<float> before{rows.row(0).data(), {}}, after = before;
  (*learner)->evaluate(std::span(&before, 1));
  (*learner)->local_steps(std::span(&step, 1));
  (*learner)->evaluate(std::span(&after, 1));
  CHECK(std::isfinite(loss));
  CHECK(after.result.loss < 0.2 * before.result.loss);
  CHECK(after.result.accuracy == 1);
}
