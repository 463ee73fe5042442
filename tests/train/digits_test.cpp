#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "train/dataset.hpp"

using namespace gossamer;
using namespace gossamer::train;

namespace {
const Dataset& digits() {
  static const Dataset data = make_dataset("digits", {}, {}).value();
  return data;
}
}  // namespace

TEST_CASE("the digits are the 1,797 of UCI, 8×8, between 0 and 1") {
  const Dataset& data = digits();
  CHECK(data.name == "digits");
  CHECK(data.count == 1797);
  CHECK(data.train_count == 1442);
  CHECK(data.test_count() == 355);
  CHECK(data.channels * 100 + data.height * 10 + data.width == 188);
  CHECK(data.classes == 10);
  REQUIRE(data.features.size() == 1797 * 64);
  REQUIRE(data.labels.size() == 1797);
  CHECK(data.targets.empty());
  CHECK(data.natural_shards.empty());
  CHECK_FALSE(data.optimum.has_value());
  CHECK(*std::min_element(data.features.begin(), data.features.end()) == 0.0F);
  CHECK(*std::max_element(data.features.begin(), data.features.end()) == 1.0F);
  for (float pixel : data.features) REQUIRE(pixel * 16 == std::round(pixel * 16));
  // Sums that numpy gives for scikit-learn's load_digits(): every pixel and label is where it
  // should be.
  double ink = 0, weighted = 0;
  std::vector<double> first = {0, 0, 5, 13, 9, 1, 0, 0, 0, 0, 13, 15, 10, 15, 5, 0};
  for (std::size_t i = 0; i < first.size(); ++i) CHECK(data.features[i] * 16 == first[i]);
  for (std::size_t i = 0; i < data.features.size(); ++i) {
    ink += data.features[i] * 16;
    weighted += data.features[i] * 16 * static_cast<double>(i % 64 + 1) * (data.labels[i / 64] + 1);
  }
  CHECK(ink == 561718);
  CHECK(weighted == 98958279);
}

TEST_CASE("every fifth sample of each class tests") {
  const Dataset& data = digits();
  const std::vector<int> in_file = {178, 182, 177, 183, 181, 182, 181, 179, 174, 180};
  std::vector<int> train(10), test(10);
  for (std::size_t i = 0; i < data.count; ++i)
    ++(i < data.train_count ? train : test)[static_cast<std::size_t>(data.labels[i])];
  for (std::size_t k = 0; k < 10; ++k) {
    CHECK(test[k] == in_file[k] / 5);
    CHECK(train[k] + test[k] == in_file[k]);
  }
}

TEST_CASE("no image lies on both sides of the split") {
  const Dataset& data = digits();
  std::set<std::vector<float>> train;
  int shared = 0;
  for (std::size_t i = 0; i < data.count; ++i) {
    const auto begin = data.features.begin() + static_cast<std::ptrdiff_t>(i * 64);
    const std::vector<float> image(begin, begin + 64);
    if (i < data.train_count) train.insert(image);
    else shared += static_cast<int>(train.count(image));
  }
  CHECK(shared == 0);
}

TEST_CASE("the digits take no parameters") {
  const auto data = make_dataset("digits", {}, {{"path", std::string("x")}});
  REQUIRE_FALSE(data.ok());
  CHECK(data.error().message.find("data.path") != std::string::npos);
}
