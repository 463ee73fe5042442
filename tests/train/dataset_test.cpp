// Properties of every data set of the catalog.
#include "train/dataset.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "train/shards.hpp"

using namespace gossamer;
using namespace gossamer::train;

namespace {

/// A small data set of the kind, or none if the kind needs files.
Result<Dataset> small(const DatasetKind& kind, int peers, std::uint64_t seed = 1) {
  return kind.make({peers, seed}, {});
}

void check_consistent(const Dataset& data) {
  CHECK(data.train_count > 0);
  CHECK(data.train_count <= data.count);
  CHECK(data.features.size() == data.count * data.feature_count());
  CHECK(std::all_of(data.features.begin(), data.features.end(),
                    [](float value) { return std::isfinite(value); }));
  if (data.classes > 0) {
    CHECK(data.labels.size() == data.count);
    CHECK(data.targets.empty());
    for (std::int32_t label : data.labels) REQUIRE((label >= 0 && label < data.classes));
  } else {
    CHECK(data.labels.empty());
    CHECK(data.targets.size() == data.count);
    CHECK(std::all_of(data.targets.begin(), data.targets.end(),
                      [](float value) { return std::isfinite(value); }));
  }
  if (data.optimum) CHECK(data.optimum->size() == data.feature_count());
}

}  // namespace

TEST_CASE("every data set describes itself, refuses unknown keys and makes consistent tables") {
  const auto kinds = datasets::catalog();
  CHECK(kinds.size() >= 4);
  for (const DatasetKind& kind : kinds) {
    CAPTURE(kind.name);
    CHECK(kind.summary.size() > 20);
    CHECK(kind.source.size() > 10);
    for (const ParameterSpec& parameter : kind.parameters) CHECK(parameter.notes.help.size() > 5);
    const auto unknown = make_dataset(kind.name, {}, {{"no_such_key", true}});
    REQUIRE_FALSE(unknown.ok());
    CHECK(unknown.error().message.find("data.no_such_key") != std::string::npos);
    if (kind.name == "cifar10" || kind.name == "csv" || kind.name == "idx")
      continue;  // needs files: <kind>_test.cpp
    for (int peers : {1, 3, 16}) {
      const auto data = small(kind, peers);
      REQUIRE(data.ok());
      CHECK(data->name == kind.name);
      check_consistent(*data);
      const auto again = small(kind, peers);
      CHECK(again->features == data->features);
      CHECK(again->targets == data->targets);
      CHECK(again->labels == data->labels);
      const auto shards = make_shards(*data, {}, peers, 1);
      REQUIRE_MESSAGE(shards.ok(), (shards.ok() ? "" : shards.error().message));
      std::size_t samples = 0;
      for (const auto& shard : *shards) samples += shard.size();
      CHECK(samples == data->train_count);
    }
  }
}

TEST_CASE("an unknown data set is refused with a list of the kinds") {
  const auto data = make_dataset("mnist", {}, {});
  REQUIRE_FALSE(data.ok());
  CHECK(data.error().kind == ErrorKind::invalid);
  CHECK(
      data.error().message ==
      "data.kind: there is no data set 'mnist', only cifar10, csv, digits, idx, linear, quadratic");
}
