// Images that training sees in views: which pixels a view shows, how views are drawn, and that a
// learner trains on what they show.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "base/philox.hpp"
#include "base/rows.hpp"
#include "tests/text_test_util.hpp"
#include "tests/train/learner/learner_test_util.hpp"

using namespace gossamer;
using namespace gossamer::train;
using gpu::ImageViews;

namespace {

constexpr int kChannels = 3, kHeight = 5, kWidth = 6, kImages = 12;
constexpr std::size_t kValues = std::size_t{kChannels} * kHeight * kWidth;

std::shared_ptr<Dataset> view_images() {
  auto data = std::make_shared<Dataset>();
  data->name = "images";
  data->channels = kChannels, data->height = kHeight, data->width = kWidth, data->classes = 3;
  data->count = kImages, data->train_count = kImages - 2;
  RandomStream random(1, kNoPeer, Purpose::test);
  for (int i = 0; i < kImages; ++i) {
    data->labels.push_back(i % 3);
    for (std::size_t k = 0; k < kValues; ++k)
      data->features.push_back(static_cast<float>(random.next_normal()));
  }
  return data;
}

/// The view as it is defined: zero padding, a crop, a flip. [channels, height, width]
std::vector<float> cropped(std::span<const float> image, int crop, int down, int right,
                           bool flipped) {
  const int high = kHeight + 2 * crop, wide = kWidth + 2 * crop;
  std::vector<float> view;
  for (int c = 0; c < kChannels; ++c) {
    std::vector<float> padded(static_cast<std::size_t>(high * wide));
    for (int y = 0; y < kHeight; ++y)
      for (int x = 0; x < kWidth; ++x)
        padded[static_cast<std::size_t>((y + crop) * wide + x + crop)] =
            image[static_cast<std::size_t>((c * kHeight + y) * kWidth + x)];
    for (int y = 0; y < kHeight; ++y)
      for (int x = 0; x < kWidth; ++x) {
        const int column = flipped ? kWidth - 1 - x : x;
        view.push_back(padded[static_cast<std::size_t>((y + down) * wide + column + right)]);
      }
  }
  return view;
}

std::vector<float> seen(std::span<const float> image, const ImageViews& views,
                        std::uint32_t index) {
  std::vector<float> view;
  for (int c = 0; c < kChannels; ++c)
    for (int p = 0; p < kHeight * kWidth; ++p) {
      const int source = views.source(index, p);
      view.push_back(source < 0 ? 0
                                : image[static_cast<std::size_t>(c * kHeight * kWidth + source)]);
    }
  return view;
}

LearnerRequest view_request(int crop, bool flip, int batch = 4) {
  LearnerRequest request;
  request.data = view_images();
  request.shards = {{0, 1, 2, 3, 4}, {5, 6, 7, 8, 9}};
  request.model = chain({Convolution{.channels = 4, .kernel = 3, .padding = 1},
                         Dense{.units = 8, .activation = Activation::tanh}, Dense{.units = 3}},
                        Loss::softmax_cross_entropy);
  request.sampling.batch = batch;
  request.sampling.crop = crop, request.sampling.flip = flip;
  request.optimizer = {.rate = 0.1};
  request.seed = 3;
  return request;
}

/// The gradient of a peer's batch of step `step`, at its starting row.
std::vector<double> view_gradient(LearnerRequest request, int peer, std::uint64_t step) {
  gpu::BasicCpuDevice<double> device(1);
  const auto learns = learner<double>(std::move(request), device);
  std::vector<double> row(learns->parameters()), gradient(row.size());
  learns->initialise(peer, row);
  double loss = 0;
  StepRequest<double> one{.peer = peer,
                          .first_step = step,
                          .parameters = row.data(),
                          .gradient = gradient.data(),
                          .loss = &loss};
  learns->gradient(std::span(&one, 1));
  return gradient;
}

}  // namespace

TEST_CASE("views are the crops of an image that is padded with zeros, and these flipped") {
  const auto data = view_images();
  const std::span<const float> image = data->features_of(2);
  for (const int crop : {0, 1, 3})
    for (const bool flip : {false, true}) {
      if (crop == 0 && !flip) continue;
      const ImageViews views{.crop = crop, .flip = flip, .height = kHeight, .width = kWidth};
      std::set<std::vector<float>> expected, found;
      for (int down = 0; down <= 2 * crop; ++down)
        for (int right = 0; right <= 2 * crop; ++right)
          for (int flipped = 0; flipped <= (flip ? 1 : 0); ++flipped)
            expected.insert(cropped(image, crop, down, right, flipped == 1));
      for (std::uint32_t view = 0; view < views.count(); ++view) {
        const std::uint32_t index = ImageViews::index(2, view);
        CHECK(ImageViews::number(index) == 2);
        found.insert(seen(image, views, index));
      }
      CHECK(found == expected);
      CHECK(found.size() == views.count());
    }
  CHECK(ImageViews{.crop = ImageViews::kMostCrop, .flip = true}.count() <= 256);
}

TEST_CASE("each view of a batch is drawn for peer and step, and as often as any other") {
  std::vector<std::uint32_t> shard(60);
  std::iota(shard.begin(), shard.end(), 0U);
  const ImageViews views{.crop = 1, .flip = true, .height = kHeight, .width = kWidth};
  BatchOrder whole(shard, 10, 1, 7), seen(shard, 10, 1, 7, views), again(shard, 10, 1, 7, views),
      other(shard, 10, 2, 7, views);
  std::vector<int> counts(views.count());
  std::set<std::vector<std::uint32_t>> drawn;
  constexpr int kSteps = 1800;
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    const auto numbers = whole.batch(step);
    const std::vector<std::uint32_t> expected(numbers.begin(), numbers.end());
    std::vector<std::uint32_t> found, which;
    for (const std::uint32_t index : seen.batch(step)) {
      found.push_back(ImageViews::number(index));
      which.push_back(index >> ImageViews::kNumberBits);
      ++counts.at(which.back());
    }
    CHECK(found == expected);
    drawn.insert(which);
  }
  CHECK(drawn.size() == kSteps);
  for (const int count : counts) CHECK(count == doctest::Approx(1000).epsilon(0.15));
  const auto last = seen.batch(5), same = again.batch(5), others = other.batch(5);
  CHECK(std::ranges::equal(last, same));
  CHECK_FALSE(std::ranges::equal(last, others));
}

TEST_CASE(
    "a gradient is that of the images that the views show, and models are evaluated on whole "
    "images") {
  for (const auto& [crop, flip] : {std::pair(2, false), {0, true}, {3, true}})
    for (const std::uint64_t step : {0, 6}) {
      const LearnerRequest base = view_request(crop, flip);
      BatchOrder order(base.shards[1], 4, 1, base.seed, image_views(base.sampling, *base.data));
      auto cut = std::make_shared<Dataset>(*base.data);
      const ImageViews views = image_views(base.sampling, *base.data);
      // In the place of each image of the batch, what its view shows.
      for (const std::uint32_t index : order.batch(step)) {
        const std::uint32_t number = ImageViews::number(index);
        const auto view = seen(base.data->features_of(number), views, index);
        std::ranges::copy(view,
                          cut->features.begin() + static_cast<std::ptrdiff_t>(number * kValues));
      }
      LearnerRequest expected = view_request(0, false);
      expected.data = cut;
      CHECK(view_gradient(base, 1, step) == view_gradient(expected, 1, step));
      CHECK(view_gradient(base, 1, step) != view_gradient(view_request(0, false), 1, step));
      LearnerRequest parts = base;
      parts.split.layers = 2, parts.split.microbatches = 2;
      CHECK(view_gradient(parts, 1, step) == view_gradient(base, 1, step));
    }
  gpu::BasicCpuDevice<double> device(1);
  std::vector<double> losses;
  for (const int crop : {0, 2}) {
    const auto learns = learner<double>(view_request(crop, false), device);
    std::vector<double> row(learns->parameters());
    learns->initialise(0, row);
    EvaluateRequest<double> one{row.data(), {}};
    learns->evaluate(std::span(&one, 1));
    losses.push_back(one.result.loss);
  }
  CHECK(losses[0] == losses[1]);
}

TEST_CASE("views of what has none are refused") {
  LearnerRequest flat = view_request(1, false);
  auto data = std::make_shared<Dataset>(*flat.data);
  data->channels = 1, data->height = 1, data->width = static_cast<int>(kValues);
  flat.data = data;
  flat.model = chain({Dense{.units = 3}}, Loss::softmax_cross_entropy);
  CHECK(contains(refusal(flat), "data.crop = 1: samples of the data images are no images"));
  flat.sampling.crop = 0, flat.sampling.flip = true;
  CHECK(contains(refusal(flat), "data.flip = true: samples of the data images are no images"));
  CHECK(
      contains(refusal(view_request(5, false)), "images have 5 × 6 pixels; give a smaller number"));
  LearnerRequest secret = view_request(1, false);
  secret.optimizer.privacy.clip = 1, secret.optimizer.privacy.noise_multiplier = 1;
  CHECK(contains(refusal(secret), "or privacy.clip = 0"));
  const auto most = shard_parameters().read("data", {{"crop", std::int64_t{6}}});
  REQUIRE_FALSE(most.ok());
  CHECK(contains(most.error().message, "data.crop"));
}
