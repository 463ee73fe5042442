// The handwritten digits that come with the program (data/digits/README.md): 1,797 real images of
// 8×8, no download.
#include <array>
#include <span>

#include "base/check.hpp"
#include "train/dataset.hpp"
#include "train/idx_file.hpp"

namespace gossamer::train::embedded {  // written by the build from data/digits/
std::span<const unsigned char> digits_images();
std::span<const unsigned char> digits_labels();
}  // namespace gossamer::train::embedded

namespace gossamer::train::datasets::digits {
namespace {

constexpr int kClasses = 10;
constexpr float kInk = 16;     // the darkest pixel: 4×4 black points
constexpr int kTestEvery = 5;  // of each class, in the file's order, the 5th, 10th, … sample tests

/// The samples' positions in the file: the training samples, then the test samples.
std::vector<std::uint32_t> split(std::span<const unsigned char> labels, std::size_t& train_count) {
  std::vector<std::uint32_t> order, test;
  std::array<int, kClasses> seen{};
  for (std::uint32_t i = 0; i < labels.size(); ++i)
    (++seen[labels[i]] % kTestEvery == 0 ? test : order).push_back(i);
  train_count = order.size();
  order.insert(order.end(), test.begin(), test.end());
  return order;
}

Result<Dataset> make(const DatasetContext&, const ParameterValues& values) {
  GOSSAMER_TRY_STATUS(check_values("data", {}, values));
  GOSSAMER_TRY(const IdxArray images,
               parse_idx("the built-in digits' images", embedded::digits_images(), 3));
  GOSSAMER_TRY(const IdxArray labels,
               parse_idx("the built-in digits' labels", embedded::digits_labels(), 1));
  GOSSAMER_CHECK(images.dimensions[0] == labels.dimensions[0],
                 "the built-in digits have a label for each image");

  Dataset data;
  data.name = "digits";
  data.height = static_cast<int>(images.dimensions[1]);
  data.width = static_cast<int>(images.dimensions[2]);
  data.classes = kClasses;
  data.count = images.dimensions[0];
  const std::size_t pixels = data.feature_count();
  data.features.reserve(data.count * pixels);
  for (const std::uint32_t sample : split(labels.values, data.train_count)) {
    for (std::size_t p = 0; p < pixels; ++p)
      data.features.push_back(images.values[sample * pixels + p] / kInk);
    data.labels.push_back(labels.values[sample]);
  }
  return data;
}

}  // namespace

DatasetKind descriptor() {
  return {.name = "digits",
          .summary =
              "1,797 handwritten digits of 8×8 pixels, built in; 1,442 train, 355 test (every "
              "fifth of each class)",
          .source =
              "E. Alpaydin, C. Kaynak: Optical Recognition of Handwritten Digits, UCI 1998, "
              "doi:10.24432/C50P49, "
              "CC BY 4.0",
          .parameters = {},
          .make = make};
}

}  // namespace gossamer::train::datasets::digits
