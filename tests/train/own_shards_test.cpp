// Own data of each peer: its files, its shard, and the scales that all peers share.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "tests/train/data_test_util.hpp"
#include "train/shard_summary.hpp"
#include "train/shards.hpp"

using namespace gossamer;
using namespace gossamer::train;

namespace {

const ParameterValue kNames = std::vector<std::string>{"no", "yes"};

/// Files own-0.csv, own-1.csv and own-2.csv of 4, 6 and 8 lines, in which the feature `x` grows
/// over all lines and `c` is 5 in peer 0's and peer 1's.
void write_own_files(Folder& folder) {
  int x = 0;
  for (int peer = 0; peer < 3; ++peer) {
    std::string lines = "x,c,answer\n";
    for (int i = 0; i < 4 + 2 * peer; ++i, ++x)
      lines += fmt::format("{},{},{}\n", x, peer < 2 ? 5 : x, x % 2 == 0 ? "yes" : "no");
    folder.file(fmt::format("own-{}.csv", peer), lines);
  }
}

Result<Dataset> load(const Folder& folder, const std::string& kind, const std::vector<int>& hosted,
                     ParameterValues values) {
  values.try_emplace("path", folder.path("own-{peer}.csv"));
  return make_dataset(kind, {.peers = 3, .seed = 0, .own = true, .hosted = hosted}, values);
}

std::string refusal(const Folder& folder, const std::string& kind, const std::vector<int>& hosted,
                    const ParameterValues& values) {
  const auto data = load(folder, kind, hosted, values);
  REQUIRE_FALSE(data.ok());
  return data.error().message;
}

}  // namespace

TEST_CASE("moments of shards give the moments of all samples, and a constant becomes 0") {
  const std::vector<double> rows{1, 7, 2, 7, 4, 7, 10, 7, 20, 7};  // [5, 2]
  const std::span<const double> all(rows);
  const ShardSummary whole = summarise(all, 2);
  CHECK(whole.samples == 5);
  CHECK(whole.means == std::vector<double>{1 / 5. + 2 / 5. + 4 / 5. + 10 / 5. + 20 / 5., 7});
  CHECK(whole.variances[1] == 0);
  const std::vector<ShardSummary> parts{
      summarise(all.first(4), 2), {}, summarise(all.subspan(4), 2)};
  const auto pooled = pooled_scales(parts), expected = pooled_scales(std::span(&whole, 1));
  CHECK(pooled[0].mean == doctest::Approx(7.4).epsilon(1e-14));
  CHECK(pooled[0].deviation == doctest::Approx(std::sqrt(49.44)).epsilon(1e-14));
  CHECK(expected[0].deviation == doctest::Approx(pooled[0].deviation).epsilon(1e-14));
  CHECK(pooled[1].mean == 7);
  CHECK(std::isinf(pooled[1].deviation));
  std::vector<ShardSummary> other = parts;
  other[2].means[1] = 8;  // constant in each shard, and not the same
  CHECK(pooled_scales(other)[1].deviation == doctest::Approx(std::sqrt(0.24)).epsilon(1e-14));
  other[0].variances[1] = other[2].variances[1] = 0;  // below what a double holds
  other[0].means[1] = 1e-200, other[2].means[1] = 2e-200;
  CHECK(std::isinf(pooled_scales(other)[1].deviation));
  CHECK_FALSE(is_moment(1e39, 0));
  CHECK_FALSE(is_moment(0, 1e80));
  CHECK(is_moment(-3e38, 1e76));
  CHECK_FALSE(is_shard_size(0));
  CHECK_FALSE(is_shard_size(std::uint64_t{1} << 32));
  CHECK(pooled_scales({}).empty());
  CHECK(pooled_scales(std::vector<ShardSummary>(2)).empty());
}

TEST_CASE("{peer} stands for the id, everywhere in a name") {
  CHECK(file_of_peer("a/{peer}/x-{peer}.csv", 12) == "a/12/x-12.csv");
  CHECK(file_of_peer("a/{Peer}{peer", 12) == "a/{Peer}{peer");
  CHECK(check_file_of_peer("data.path", "x.csv", 1).ok());
  CHECK(check_file_of_peer("data.path", "x.csv", 0).ok());
  CHECK_FALSE(check_file_of_peer("data.path", "x.csv", 2).ok());
}

TEST_CASE("each peer has the samples of its file, wherever it is hosted") {
  Folder folder("csv");
  write_own_files(folder);
  const ParameterValues values{{"class_names", kNames}, {"test_fraction", 0.25}};
  Dataset all = *load(folder, "csv", {0, 1, 2}, values);
  CHECK(all.classes == 2);
  CHECK(all.test_count() == 1 + 2 + 2);
  CHECK(all.sample_description == "columns x, c, answer");
  const Shards shards = *make_shards(all, {.partition = "own", .batch = 3}, 3, 0);
  CHECK(shards[0] == std::vector<std::uint32_t>{0, 1, 2});
  CHECK(shards[1] == std::vector<std::uint32_t>{3, 4, 5, 6});
  CHECK(shards[2].size() == 6);
  standardise(all, all.own_shards);

  for (int peer = 0; peer < 3; ++peer) {
    CAPTURE(peer);
    Dataset one = *load(folder, "csv", {peer}, values);
    const auto p = static_cast<std::size_t>(peer);
    CHECK(one.own_shards[p] == all.own_shards[p]);
    CHECK(one.own_shards[(p + 1) % 3].samples == 0);
    const Shards own = *make_shards(one, {.partition = "own", .batch = 3}, 3, 0);
    REQUIRE(own[p].size() == shards[p].size());
    CHECK(own[(p + 1) % 3].empty());
    standardise(one, all.own_shards);
    for (std::size_t i = 0; i < own[p].size(); ++i)
      for (std::size_t f = 0; f < 2; ++f) {
        CHECK(one.features[2 * own[p][i] + f] == all.features[2 * shards[p][i] + f]);
        CHECK(one.labels[own[p][i]] == all.labels[shards[p][i]]);
      }
  }
  // One file without {peer}, of a process with one peer, and a common file of test samples.
  folder.file("test.csv", "x,c,answer\n1,2,no\n");
  const Dataset alone = *load(folder, "csv", {1},
                              {{"class_names", kNames},
                               {"path", text(folder.path("own-1.csv"))},
                               {"test_path", text(folder.path("test.csv"))}});
  CHECK(alone.train_count == 6);
  CHECK(alone.test_count() == 1);
  const Dataset server = *load(
      folder, "csv", {}, {{"class_names", kNames}, {"test_path", text(folder.path("test.csv"))}});
  CHECK(server.train_count == 0);
  CHECK(server.test_count() == 1);
}

TEST_CASE("what does not fit is named, with what to do") {
  Folder folder("csv");
  write_own_files(folder);
  const ParameterValues names{{"class_names", kNames}};
  const auto with = [&](const std::string& key, ParameterValue value) {
    ParameterValues values = names;
    values[key] = std::move(value);
    return values;
  };
  CHECK(refusal(folder, "csv", {0, 1}, {}).ends_with("the files here have \"no\", \"yes\""));
  CHECK(refusal(folder, "csv", {0, 1}, with("path", text(folder.path("own-0.csv"))))
            .find("write {peer} where their files' names differ") != std::string::npos);
  CHECK(refusal(folder, "csv", {}, names).starts_with("data.test_path: a process of servers"));
  CHECK(refusal(folder, "csv", {0}, {{"class_names", std::vector<std::string>{"yes", "maybe"}}})
            .ends_with("class 'no' is not in data.class_names: yes, maybe"));
  CHECK(refusal(folder, "csv", {0}, {{"class_names", std::vector<std::string>{"no", "no"}}}) ==
        "data.class_names: a class stands there twice");
  CHECK(refusal(folder, "csv", {0}, with("task", text("regression")))
            .starts_with("data.class_names: a regression has no classes"));
  folder.file("own-2.csv", "c,x,answer\n1,2,no\n");
  CHECK(refusal(folder, "csv", {0, 2}, names).find("its columns are c, x, answer, but ") !=
        std::string::npos);

  const Dataset few = *load(folder, "csv", {0}, with("test_fraction", 0.0));
  const auto shards = make_shards(few, {.partition = "own", .batch = 5}, 3, 0);
  REQUIRE_FALSE(shards.ok());
  CHECK(
      shards.error().message.starts_with("data: peer 0 has 4 training samples, fewer than a "
                                         "batch of 5 (1 of 3 peers"));
  const auto digits = make_shards(*make_dataset("digits", {}, {}), {.partition = "own"}, 3, 0);
  REQUIRE_FALSE(digits.ok());
  CHECK(digits.error().message.starts_with("data.partition: own is for files that each peer has"));
}

TEST_CASE("images too: the files of each peer, all of one shape") {
  Folder folder("idx");
  const auto images = [](unsigned char count, unsigned char side) {
    Bytes bytes{0, 0, 8, 3, 0, 0, 0, count, 0, 0, 0, side, 0, 0, 0, side};
    bytes.resize(bytes.size() + std::size_t{count} * side * side, count);
    return bytes;
  };
  const auto labels = [](unsigned char count) {
    Bytes bytes{0, 0, 8, 1, 0, 0, 0, count};
    bytes.resize(bytes.size() + count, static_cast<unsigned char>(count % 10));
    return bytes;
  };
  for (const unsigned char peer : {0, 1, 2}) {
    const auto count = static_cast<unsigned char>(3 + peer);
    folder.file(fmt::format("{}/train-images-idx3-ubyte", peer), images(count, 2))
        .file(fmt::format("{}/train-labels-idx1-ubyte", peer), labels(count))
        .file(fmt::format("{}/t10k-images-idx3-ubyte", peer), images(1, 2))
        .file(fmt::format("{}/t10k-labels-idx1-ubyte", peer), labels(1));
  }
  const ParameterValues values{{"path", text(folder.path("{peer}"))}};
  const Dataset all = *load(folder, "idx", {0, 1, 2}, values);
  CHECK(all.train_count == 12);
  CHECK(all.test_count() == 3);
  CHECK(all.own_shards[2] == ShardSummary{5, {}, {}});
  CHECK(all.natural_shards[1] == std::vector<std::uint32_t>{3, 4, 5, 6});
  CHECK(all.sample_description == "images of 2 by 2");
  const Dataset one = *load(folder, "idx", {2}, values);
  for (std::size_t i = 0; i < 5 * 4; ++i) CHECK(one.features[i] == all.features[7 * 4 + i]);
  CHECK(refusal(folder, "idx", {}, values).starts_with("data.partition: with own, a server"));
  folder.file("1/train-images-idx3-ubyte", images(4, 3))
      .file("1/t10k-images-idx3-ubyte", images(1, 3));
  CHECK(refusal(folder, "idx", {0, 1}, values).find("images of 3×3, and ") != std::string::npos);
}
