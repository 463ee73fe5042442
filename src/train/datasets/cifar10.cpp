// CIFAR-10 in its binary version: 60,000 colour photographs of 32×32 in ten classes. Not shipped;
// users download it from https://www.cs.toronto.edu/~kriz/cifar.html ("CIFAR-10 binary
// version").
//
// A record is 1 byte of label and 3 × 1,024 bytes of pixels, red, green, blue, each row by row: the
// order in which a sample lies in a Dataset.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "train/dataset.hpp"

namespace gossamer::train::datasets::cifar10 {
namespace {

namespace fs = std::filesystem;

constexpr int kChannels = 3, kSide = 32, kClasses = 10;
constexpr std::size_t kPixels = kSide * kSide, kRecord = 1 + kChannels * kPixels;
/// Mean and standard deviation of each channel over the 50,000 training images, bytes scaled to 0
/// … 1.
constexpr std::array<double, kChannels> kMean{0.4914, 0.4822, 0.4465},
    kDeviation{0.2470, 0.2435, 0.2616};

constexpr std::size_t kSamples = 60'000;  // of the whole data set
constexpr const char* kTrainFiles[] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                       "data_batch_4.bin", "data_batch_5.bin"};
constexpr const char* kTestFile = "test_batch.bin";
constexpr const char* kRemedy =
    "data.path is the folder of CIFAR-10's binary version (cifar-10-batches-bin, with "
    "data_batch_1.bin "
    "to data_batch_5.bin and test_batch.bin), from https://www.cs.toronto.edu/~kriz/cifar.html";

struct Cifar10Options {
  std::string path;
  std::int64_t train_count = 0, test_count = 0;
};

const ParameterSet<Cifar10Options>& parameters() {
  static const ParameterSet<Cifar10Options> set =
      ParameterSet<Cifar10Options>()
          .add("path", &Cifar10Options::path,
               {.help =
                    "the folder of the binary version, cifar-10-batches-bin, or its parent folder",
                .path = true,
                .local = true})
          .add("train_count", &Cifar10Options::train_count,
               {.help = "number of training samples, the first of the files; 0: all",
                .minimum = 0,
                .unit = "samples"})
          .add("test_count", &Cifar10Options::test_count,
               {.help = "number of test samples, the first of the file; 0: all",
                .minimum = 0,
                .unit = "samples"});
  return set;
}

/// The value of each byte of each channel.
using Values = std::array<std::array<float, 256>, kChannels>;

Values normalised() {
  Values values;
  for (std::size_t c = 0; c < kChannels; ++c)
    for (std::size_t byte = 0; byte < 256; ++byte)
      values[c][byte] =
          static_cast<float>((static_cast<double>(byte) / 255 - kMean[c]) / kDeviation[c]);
  return values;
}

/// A file and how many of its samples, the first ones, are used.
struct Part {
  InputFile file;
  std::size_t count = 0;
};

Status check_label(const fs::path& path, std::size_t record, int label) {
  if (label < kClasses) return {};
  return data_error(
      fmt::format("{}: record {} has label {}, not one of 0 to 9: damaged, or another data set; {}",
                  path.string(), record, label, kRemedy));
}

/// At most `most` of the file's samples. The first record is looked at: another file, which may be
/// of any size, is refused before any other one is opened.
Result<Part> open_part(const fs::path& path, std::size_t most) {
  auto opened = InputFile::open(path);
  if (!opened.ok()) return data_error(fmt::format("{}; {}", opened.error().message, kRemedy));
  const std::uint64_t bytes = opened->bytes();
  if (bytes == 0 || bytes % kRecord != 0)
    return data_error(
        fmt::format("{}: {} bytes, which is no whole number of records of {} (a label and 3 × 32 × "
                    "32 pixels): cut short, "
                    "or another data set; {}",
                    path.string(), bytes, kRecord, kRemedy));
  char label = 0;
  GOSSAMER_TRY_STATUS(opened->read_exactly(0, {&label, 1}));
  GOSSAMER_TRY_STATUS(check_label(path, 0, static_cast<unsigned char>(label)));
  return Part{std::move(opened).value(), std::min<std::uint64_t>(most, bytes / kRecord)};
}

Status append(Dataset& data, const Part& part, const Values& values) {
  std::array<unsigned char, kRecord> record;
  for (std::size_t i = 0; i < part.count; ++i) {
    GOSSAMER_TRY_STATUS(part.file.read_exactly(
        i * kRecord, {reinterpret_cast<char*>(record.data()), record.size()}));
    GOSSAMER_TRY_STATUS(check_label(part.file.path(), i, record[0]));
    data.labels.push_back(record[0]);
    for (std::size_t c = 0; c < kChannels; ++c)
      for (std::size_t p = 0; p < kPixels; ++p)
        data.features.push_back(values[c][record[1 + c * kPixels + p]]);
  }
  return {};
}

Status check_count(const char* key, std::int64_t wanted, std::size_t there) {
  if (static_cast<std::size_t>(wanted) <= there) return {};
  return invalid_error(
      fmt::format("data.{}: {} samples, and the files have {}", key, wanted, there));
}

Result<Dataset> make(const DatasetContext&, const ParameterValues& given) {
  GOSSAMER_TRY(const Cifar10Options options, parameters().read("data", given));
  if (options.path.empty()) return invalid_error(fmt::format("data.path: empty; {}", kRemedy));
  std::error_code ignored;
  const fs::path inner = fs::path(options.path) / "cifar-10-batches-bin";
  const fs::path folder = fs::is_directory(inner, ignored) ? inner : fs::path(options.path);

  Dataset data;
  data.name = "cifar10";
  data.channels = kChannels, data.height = kSide, data.width = kSide;
  data.classes = kClasses;
  const Values values = normalised();
  const auto most = [](std::int64_t wanted) {
    return wanted > 0 ? static_cast<std::size_t>(wanted) : ~std::size_t{0};
  };
  const std::size_t train = most(options.train_count), test = most(options.test_count);
  std::vector<Part> parts;
  for (const char* file : kTrainFiles) {
    if (data.train_count == train) break;
    GOSSAMER_TRY(Part part, open_part(folder / file, train - data.train_count));
    data.train_count += part.count;
    parts.push_back(std::move(part));
  }
  GOSSAMER_TRY_STATUS(check_count("train_count", options.train_count, data.train_count));
  GOSSAMER_TRY(Part tests, open_part(folder / kTestFile, test));
  data.count = data.train_count + tests.count;
  GOSSAMER_TRY_STATUS(check_count("test_count", options.test_count, tests.count));
  parts.push_back(std::move(tests));
  data.features.reserve(std::min(data.count, kSamples) * data.feature_count());
  for (const Part& part : parts) GOSSAMER_TRY_STATUS(append(data, part, values));
  return data;
}

}  // namespace

DatasetKind descriptor() {
  return {.name = "cifar10",
          .summary =
              "CIFAR-10's 50,000 training and 10,000 test photographs of 3×32×32, from its binary "
              "files; each channel "
              "normalised (random crops and flips: data.crop, data.flip)",
          .source =
              "A. Krizhevsky: Learning Multiple Layers of Features from Tiny Images, 2009; files "
              "from https://www.cs.toronto.edu/~kriz/cifar.html, not included",
          .parameters = parameters().specs(),
          .make = make};
}

}  // namespace gossamer::train::datasets::cifar10
