// Files of data sets.
#include "tests/fuzz/input_files.hpp"
#include "train/dataset.hpp"
#include "train/gzip.hpp"
#include "train/idx_file.hpp"

namespace gossamer::fuzz {
namespace {

void run_idx(std::span<const std::byte> input) {
  for (const int dimensions : {1, 3}) {
    const auto array = train::parse_idx("images", raw(input), dimensions);
    if (!ok(array)) continue;
    std::size_t values = 1;
    for (const std::size_t dimension : array->dimensions) values *= dimension;
    require(array->values.size() == values, "an array has the values that its dimensions say");
  }
}

std::vector<Bytes> idx_seeds() {
  Bytes one = bytes_of(std::string_view("\0\0\x08\x01\0\0\0\x03\x01\x02\x03", 11));
  Bytes three =
      bytes_of(std::string_view("\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x02\x01\x02\x03\x04", 20));
  // The same, packed by gzip.
  Bytes packed =
      bytes_of(std::string_view("\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff\x63\x60\xe0\x60\x64\x60"
                                "\x60\x60\x66\x64\x62\x06\x00\x8b\xe5\xbd\xa4\x0b\x00\x00\x00",
                                31));
  return {one, three, packed};
}

void run_gzip(std::span<const std::byte> input) {
  constexpr std::size_t kLimit = 1 << 16;
  const auto content = train::gunzip("file", raw(input), kLimit);
  if (ok(content)) require(content->size() <= kLimit, "no more is unpacked than the limit");
}

/// All six files have the same content.
void run_cifar10(std::span<const std::byte> input) {
  static const TemporaryFolder& folder = [] -> const TemporaryFolder& {
    static const TemporaryFolder made("content");
    for (int k = 1; k <= 5; ++k) made.link(fmt::format("data_batch_{}.bin", k));
    made.link("test_batch.bin");
    return made;
  }();
  Source source(input);
  const auto wanted = static_cast<std::int64_t>(source.number(1));
  const auto content = source.rest();
  folder.write(content);
  const ParameterValues values{{"path", folder.path().string()}, {"train_count", wanted}};
  const auto data = train::make_dataset("cifar10", {2, 1}, values);
  if (!ok(data)) return;
  const std::size_t records = content.size() / 3073;
  require(data->test_count() == records, "every record of the test file is a sample");
  require(data->train_count == (wanted > 0 ? static_cast<std::size_t>(wanted) : 5 * records),
          "as many samples train as the files have, or as were asked for");
  require(data->features.size() == data->count * 3072, "every sample is whole");
  for (const std::int32_t label : data->labels)
    require(label >= 0 && label < 10, "a label is one of the classes");
}

std::vector<Bytes> cifar10_seeds() {
  std::string record(3073, 7), two(2 * 3073, 9);
  two[3073] = 0;
  return {bytes_of(std::string(1, 0) + record), bytes_of(std::string(1, 3) + two)};
}

void run_csv(std::span<const std::byte> input) {
  Source source(input);
  const std::uint64_t choices = source.number(1);
  const MemoryFile file(source.rest());
  const ParameterValues values{
      {"path", file.path()},
      {"separator", std::string((choices & 1) != 0 ? "tab" : "comma")},
      {"task", std::string((choices & 2) != 0 ? "regression" : "classification")}};
  const auto data = train::make_dataset("csv", {2, 1}, values);
  if (!ok(data)) return;
  require(data->features.size() == data->count * data->feature_count(), "every sample is whole");
  require(data->train_count <= data->count, "no more samples train than there are");
  for (const std::int32_t label : data->labels)
    require(label >= 0 && label < data->classes, "a label is one of the classes");
}

std::vector<Bytes> csv_seeds() {
  return {bytes_of(std::string(1, '\0') + "a,b,kind\n1,2,x\n3,4,y\n5,6,x\n7,8,y\n9,1,x\n"),
          bytes_of(std::string(1, 3) + "1.5\t2\n-3e2\t4\n\"5\"\t6\n7\t8\n9\t10\n")};
}

}  // namespace

std::vector<Target> data_targets() {
  return {{"idx", run_idx, idx_seeds},
          {"gzip", run_gzip, idx_seeds},
          {"csv", run_csv, csv_seeds},
          {"cifar10", run_cifar10, cifar10_seeds}};
}

}  // namespace gossamer::fuzz
