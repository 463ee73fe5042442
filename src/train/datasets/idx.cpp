// Images from files in MNIST's IDX format, plain or gzip: MNIST itself, Fashion-MNIST, KMNIST,
// EMNIST, or files of the user.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "train/dataset.hpp"
#include "train/idx_file.hpp"

namespace gossamer::train::datasets::idx {
namespace {

namespace fs = std::filesystem;

struct IdxOptions {
  std::string path, images, labels, test_images, test_labels;
  int classes = 10;
  std::int64_t train_count = 0, test_count = 0;
  double scale = 255, mean = 0, std = 1;
};

const ParameterSet<IdxOptions>& parameters() {
  static const ParameterSet<IdxOptions> set =
      ParameterSet<IdxOptions>()
          .add("path", &IdxOptions::path,
               {.help = "the folder of the files, or the file of the training images; with "
                        "data.partition = own, {peer} stands for the peer's id",
                .path = true,
                .local = true})
          .add("images", &IdxOptions::images,
               {.help = "training images, a name in the folder; empty: MNIST's usual names",
                .local = true})
          .add("labels", &IdxOptions::labels,
               {.help =
                    "training labels; empty: the name of the images with labels in place of images",
                .local = true})
          .add("test_images", &IdxOptions::test_images,
               {.help = "test images; empty: MNIST's usual names, or a part of the training file "
                        "if there are none",
                .local = true})
          .add("test_labels", &IdxOptions::test_labels,
               {.help = "test labels; empty: as labels, from the name of the test images",
                .local = true})
          .add("classes", &IdxOptions::classes,
               {.help = "labels are below this", .minimum = 1, .maximum = 256})
          .add("train_count", &IdxOptions::train_count,
               {.help = "number of training samples, the first of the file; 0: all that are not "
                        "test samples",
                .minimum = 0,
                .unit = "samples"})
          .add("test_count", &IdxOptions::test_count,
               {.help = "number of test samples, the first of the test file or the last of a "
                        "single file; 0: all that are not training samples",
                .minimum = 0,
                .unit = "samples"})
          .add("scale", &IdxOptions::scale,
               {.help = "a byte v becomes (v / scale - mean) / std",
                .minimum = 0,
                .minimum_excluded = true})
          .add("mean", &IdxOptions::mean, {.help = "mean of the scaled pixels; MNIST: 0.1307"})
          .add("std", &IdxOptions::std,
               {.help = "standard deviation of the scaled pixels; MNIST: 0.3081",
                .minimum = 0,
                .minimum_excluded = true});
  return set;
}

/// Images and their labels, of one shape; sample i's label is labels.values[i].
struct Pair {
  std::string name;  ///< of the image file, for messages
  IdxArray images, labels;
  std::size_t count() const { return images.dimensions[0]; }
};

/// The image file named `prefix` + one of the spellings in use (LeCun's, Kaggle's); empty if there
/// is none.
fs::path find_images(const fs::path& folder, const std::string& prefix) {
  std::error_code ignored;
  for (const char* name :
       {"images-idx3-ubyte", "images-idx3-ubyte.gz", "images.idx3-ubyte", "images.idx3-ubyte.gz"})
    if (fs::exists(folder / (prefix + name), ignored)) return folder / (prefix + name);
  return {};
}

/// The label file beside an image file: "images" and "idx3" in its name become "labels" and "idx1";
/// if that is not there, the same with or without ".gz". Empty if the name has no "images".
fs::path labels_beside(const fs::path& images) {
  std::string name = images.filename().string();
  const auto replace = [&name](const std::string& from, const std::string& to) {
    const auto at = name.rfind(from);
    if (at != std::string::npos) name.replace(at, from.size(), to);
    return at != std::string::npos;
  };
  if (!replace("images", "labels")) return {};
  replace("idx3", "idx1");
  const fs::path same = images.parent_path() / name;
  std::error_code ignored;
  if (fs::exists(same, ignored)) return same;
  const fs::path other = name.ends_with(".gz") ? fs::path(name).stem() : fs::path(name + ".gz");
  return fs::exists(images.parent_path() / other, ignored) ? images.parent_path() / other : same;
}

Result<Pair> read_pair(const fs::path& images, const fs::path& named_labels, const std::string& key,
                       int classes) {
  const fs::path labels = named_labels.empty() ? labels_beside(images) : named_labels;
  if (labels.empty())
    return data_error(
        fmt::format("{}: no 'images' in its name, so its labels cannot be guessed; give data.{}",
                    images.string(), key));
  Pair pair{images.string(), {}, {}};
  GOSSAMER_TRY(pair.images, read_idx(images, 3));
  GOSSAMER_TRY(pair.labels, read_idx(labels, 1));
  if (pair.labels.values.size() != pair.count())
    return data_error(fmt::format("{}: {} labels, and {} has {} images", labels.string(),
                                  pair.labels.values.size(), images.string(), pair.count()));
  for (std::size_t i = 0; i < pair.count(); ++i)
    if (pair.labels.values[i] >= classes)
      return data_error(fmt::format("{}: sample {} has label {}, not below data.classes = {}",
                                    labels.string(), i, pair.labels.values[i], classes));
  return pair;
}

/// The samples of each pair that are used.
struct Split {
  std::size_t train, test_begin, test;
};

/// With a test file, each count is a prefix of its file; 0 is all of it.
Result<Split> split_two(const IdxOptions& options, const Pair& train, const Pair& test) {
  const auto wanted_train = static_cast<std::size_t>(options.train_count);
  const auto wanted_test = static_cast<std::size_t>(options.test_count);
  if (wanted_train > train.count())
    return invalid_error(fmt::format("data.train_count: {} samples, and {} has {}", wanted_train,
                                     train.name, train.count()));
  if (wanted_test > test.count())
    return invalid_error(fmt::format("data.test_count: {} samples, and {} has {}", wanted_test,
                                     test.name, test.count()));
  if (test.images.dimensions[1] != train.images.dimensions[1] ||
      test.images.dimensions[2] != train.images.dimensions[2])
    return data_error(fmt::format("{}: images of {}×{}, and {} has {}×{}", test.name,
                                  test.images.dimensions[1], test.images.dimensions[2], train.name,
                                  train.images.dimensions[1], train.images.dimensions[2]));
  return Split{wanted_train > 0 ? wanted_train : train.count(), 0,
               wanted_test > 0 ? wanted_test : test.count()};
}

/// With one file the user must give the split, because no fixed rule suits every file.
Result<Split> split_one(const IdxOptions& options, const Pair& only) {
  const auto train = static_cast<std::size_t>(options.train_count),
             test = static_cast<std::size_t>(options.test_count);
  const std::size_t count = only.count();
  if (train == 0 && test == 0)
    return invalid_error(
        fmt::format("{}: its {} samples must train and test; give data.train_count, "
                    "data.test_count or both, or "
                    "data.test_images",
                    only.name, count));
  if (train > count || test > count - train || (train == 0 && test == count))
    return invalid_error(fmt::format(
        "data.train_count, data.test_count: {} samples to train and {} to test, and {} has {}",
        train, test, only.name, count));
  if (train == count)
    return invalid_error(fmt::format(
        "data.train_count: all {} samples of {} would train and none test; keep some back, or give "
        "data.test_images",
        count, only.name));
  if (train == 0) return Split{count - test, count - test, test};
  if (test == 0) return Split{train, train, count - train};
  return Split{train, count - test, test};
}

float scaled(int byte, const IdxOptions& options) {
  return static_cast<float>((byte / options.scale - options.mean) / options.std);
}

void append(Dataset& data, const Pair& pair, std::size_t begin, std::size_t count,
            const IdxOptions& options) {
  std::array<float, 256> value_of;
  for (int v = 0; v < 256; ++v) value_of[static_cast<std::size_t>(v)] = scaled(v, options);
  const std::size_t pixels = data.feature_count();
  for (std::size_t i = begin * pixels; i < (begin + count) * pixels; ++i)
    data.features.push_back(value_of[pair.images.values[i]]);
  data.labels.insert(data.labels.end(),
                     pair.labels.values.begin() + static_cast<std::ptrdiff_t>(begin),
                     pair.labels.values.begin() + static_cast<std::ptrdiff_t>(begin + count));
}

/// The files of one peer, or of all, and which of their samples are used.
struct Source {
  Pair train;
  std::optional<Pair> test;  ///< none: the last samples of `train` test
  Split split;

  const Pair& tests() const { return test ? *test : train; }
};

Result<Source> read_source(const IdxOptions& options, const std::string& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored))
    return data_error(fmt::format("data.path: {}: no such file or folder", path));
  const bool is_folder = fs::is_directory(path, ignored);
  if (!is_folder && !options.images.empty())
    return invalid_error(
        fmt::format("data.images: data.path, {}, is a file already; give its folder", path));
  const fs::path folder = is_folder ? fs::path(path) : fs::path(path).parent_path();
  const auto named = [&folder](const std::string& name) {
    return name.empty() ? fs::path() : folder / name;
  };

  fs::path images = is_folder ? named(options.images) : fs::path(path);
  if (images.empty()) images = find_images(folder, "train-");
  if (images.empty()) images = find_images(folder, "");
  if (images.empty())
    return data_error(fmt::format(
        "{}: no images in MNIST's usual names (train-images-idx3-ubyte, images-idx3-ubyte, with or "
        "without .gz); give data.images",
        folder.string()));
  Source source;
  GOSSAMER_TRY(source.train, read_pair(images, named(options.labels), "labels", options.classes));

  fs::path test_images = named(options.test_images);
  if (test_images.empty() && is_folder && options.images.empty())
    test_images = find_images(folder, "t10k-");
  if (test_images.empty()) {
    GOSSAMER_TRY(source.split, split_one(options, source.train));
    return source;
  }
  GOSSAMER_TRY(source.test,
               read_pair(test_images, named(options.test_labels), "test_labels", options.classes));
  GOSSAMER_TRY(source.split, split_two(options, source.train, *source.test));
  return source;
}

/// The files of each peer that is hosted, or of all peers. Their images have one shape.
Result<std::vector<Source>> read_sources(const IdxOptions& options, const DatasetContext& context) {
  std::vector<Source> sources;
  for (const int peer : context.own ? context.hosted : std::vector<int>{0}) {
    GOSSAMER_TRY(Source source,
                 read_source(options, context.own ? file_of_peer(options.path, peer)
                                                  : options.path));
    const auto& shape = source.train.images.dimensions;
    if (const auto& first = sources.empty() ? source : sources.front();
        shape[1] != first.train.images.dimensions[1] ||
        shape[2] != first.train.images.dimensions[2])
      return data_error(fmt::format(
          "{}: images of {}×{}, and {} has {}×{}", source.train.name, shape[1], shape[2],
          first.train.name, first.train.images.dimensions[1], first.train.images.dimensions[2]));
    sources.push_back(std::move(source));
  }
  return sources;
}

/// The training samples of all sources, and then their test samples.
Result<Dataset> assemble(const IdxOptions& options, const std::vector<Source>& sources) {
  constexpr std::size_t kMost = std::numeric_limits<std::uint32_t>::max();
  const Pair& first = sources.front().train;
  const std::size_t height = first.images.dimensions[1], width = first.images.dimensions[2];
  Dataset data;
  for (const Source& source : sources) {
    data.train_count += source.split.train;
    data.count += source.split.train + source.split.test;
  }
  if (data.count > kMost || height * width > std::numeric_limits<std::int32_t>::max())
    return data_error(fmt::format("{}: {} samples of {}×{} are more than this program can number",
                                  first.name, data.count, height, width));
  data.name = "idx";
  data.height = static_cast<int>(height);
  data.width = static_cast<int>(width);
  data.classes = options.classes;
  data.features.reserve(data.count * data.feature_count());
  data.labels.reserve(data.count);
  for (const Source& source : sources) append(data, source.train, 0, source.split.train, options);
  for (const Source& source : sources)
    append(data, source.tests(), source.split.test_begin, source.split.test, options);
  return data;
}

Result<Dataset> make(const DatasetContext& context, const ParameterValues& values) {
  GOSSAMER_TRY(const IdxOptions options, parameters().read("data", values));
  if (!std::isfinite(scaled(0, options)) || !std::isfinite(scaled(255, options)))
    return invalid_error(
        "data.scale, data.mean, data.std: with these a pixel is beyond what a float holds");
  if (options.path.empty()) return invalid_error("data.path: give the folder of the IDX files");
  if (context.own)
    GOSSAMER_TRY_STATUS(check_file_of_peer("data.path", options.path, context.hosted.size()));
  if (context.own && context.hosted.empty())
    return invalid_error(
        "data.partition: with own, a server has no images, and cannot know their shape; choose an "
        "algorithm without a server");
  GOSSAMER_TRY(const std::vector<Source> sources, read_sources(options, context));
  GOSSAMER_TRY(Dataset data, assemble(options, sources));
  if (!context.own) return data;
  data.sample_description = fmt::format("images of {} by {}", data.height, data.width);
  std::vector<std::size_t> sizes;
  for (const Source& source : sources) sizes.push_back(source.split.train);
  give_to_peers(data, context, sizes);
  return data;
}

}  // namespace

DatasetKind descriptor() {
  return {.name = "idx",
          .summary = "images and labels from files in MNIST's IDX format, plain or gzip",
          .source =
              "Y. LeCun, C. Cortes, C. Burges, http://yann.lecun.com/exdb/mnist/; your files, "
              "their licence",
          .parameters = parameters().specs(),
          .make = make};
}

}  // namespace gossamer::train::datasets::idx
