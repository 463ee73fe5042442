// Samples that no peer trains on: which they are, and what is evaluated.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tests/train/data_test_util.hpp"
#include "train/shards.hpp"
#include "train/validation.hpp"

using namespace gossamer;
using namespace gossamer::train;

namespace {

/// 20 training and 4 test samples of one feature, whose value is their number.
Dataset numbered() {
  Dataset data;
  data.name = "numbered";
  data.classes = 2;
  data.count = 24;
  data.train_count = 20;
  for (int i = 0; i < 24; ++i) {
    data.features.push_back(static_cast<float>(i));
    data.labels.push_back(i % 2);
  }
  return data;
}

DatasetContext context_of(double validation, EvaluationSplit evaluate = EvaluationSplit::test) {
  DatasetContext context;
  context.validation = validation;
  context.evaluate = evaluate;
  return context;
}

using Values = std::vector<float>;

Values part(const Dataset& data, std::size_t begin, std::size_t end) {
  return {data.features.begin() + static_cast<std::ptrdiff_t>(begin),
          data.features.begin() + static_cast<std::ptrdiff_t>(end)};
}

std::string refusal(Dataset data, const DatasetContext& context) {
  const Status status = hold_out(data, context);
  REQUIRE_FALSE(status.ok());
  return status.error().message;
}

}  // namespace

TEST_CASE("training, validation and test samples are each other's complement") {
  Dataset test = numbered(), validation = numbered(), other_seed = numbered();
  REQUIRE(hold_out(test, context_of(0.25)).ok());
  REQUIRE(hold_out(validation, context_of(0.25, EvaluationSplit::validation)).ok());
  DatasetContext context = context_of(0.25);
  context.seed = 7;
  REQUIRE(hold_out(other_seed, context).ok());
  CHECK(test.train_count == 15);
  CHECK(test.count == 19);
  CHECK(validation.train_count == 15);
  CHECK(validation.count == 20);
  CHECK(other_seed.features == test.features);
  const Values trained = part(test, 0, 15), validated = part(validation, 15, 20);
  CHECK(part(validation, 0, 15) == trained);
  CHECK(part(test, 15, 19) == Values{20, 21, 22, 23});
  CHECK(std::ranges::is_sorted(trained));
  CHECK(std::ranges::is_sorted(validated));
  std::set<float> all(trained.begin(), trained.end());
  all.insert(validated.begin(), validated.end());
  CHECK(all.size() == 20);
  CHECK(*all.rbegin() == 19);
  CHECK(validated.front() < 10);  // drawn from everywhere
  for (const Dataset* data : {&test, &validation})
    for (std::size_t i = 0; i < data->count; ++i)
      CHECK(data->labels[i] == static_cast<int>(data->features[i]) % 2);

  Dataset whole = numbered();
  REQUIRE(hold_out(whole, context_of(0)).ok());
  CHECK(whole.features == numbered().features);
}

TEST_CASE("of own data, each peer holds out a fraction of its shard, wherever it is hosted") {
  const auto own = [](const std::vector<std::size_t>& hosted) {
    Dataset data = numbered();
    data.own = true;
    data.natural_shards.resize(3);
    // The shards are 0 to 7, 8 to 15 and 16 to 19, of which those elsewhere are not here.
    const std::vector<std::uint32_t> begin{0, 8, 16, 20};
    Dataset here = data;
    here.features.clear(), here.labels.clear();
    std::uint32_t sample = 0;
    for (const std::size_t p : hosted)
      for (std::uint32_t i = begin[p]; i < begin[p + 1]; ++i) {
        here.natural_shards[p].push_back(sample++);
        here.features.push_back(static_cast<float>(i)), here.labels.push_back(0);
      }
    here.train_count = sample;
    here.count = sample;
    REQUIRE(hold_out(here, context_of(0.25, EvaluationSplit::validation)).ok());
    return here;
  };
  const Dataset all = own({0, 1, 2});
  CHECK(all.natural_shards[0].size() == 6);
  CHECK(all.natural_shards[1].size() == 6);
  CHECK(all.natural_shards[2] == std::vector<std::uint32_t>{12, 13, 14});
  CHECK(all.count - all.train_count == 5);
  const Dataset last = own({2});
  CHECK(part(last, 0, 3) == part(all, 12, 15));
  CHECK(part(last, 3, 4) == part(all, 19, 20));
}

TEST_CASE("what cannot be held out is named") {
  CHECK(refusal(numbered(), context_of(0, EvaluationSplit::validation))
            .ends_with("set data.validation, such as 0.1"));
  CHECK(refusal(numbered(), context_of(0.01)) ==
        "data.validation: 0 of 20 training samples would validate and 20 train; choose more");
  CHECK(refusal(numbered(), context_of(0.99))
            .ends_with("20 of 20 training samples would validate "
                       "and 0 train; choose less"));
  Dataset generated = numbered();
  generated.natural_shards.resize(2);
  CHECK(refusal(generated, context_of(0.1)).starts_with("data.validation: 'numbered' generates"));
}

TEST_CASE("a table is standardised by the samples that train") {
  Folder folder("csv");
  std::string lines = "x,y\n";
  for (int i = 0; i < 40; ++i) lines += fmt::format("{},{}\n", i * i, i % 2 == 0 ? "a" : "b");
  folder.file("t.csv", lines);
  const ParameterValues values{{"path", text(folder.path("t.csv"))}};
  const Dataset data = *make_dataset("csv", context_of(0.2), values);
  CHECK(data.train_count == 26);  // of 32, 8 being test samples
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < data.train_count; ++i) {
    sum += static_cast<double>(data.features[i]);
    squares += static_cast<double>(data.features[i]) * static_cast<double>(data.features[i]);
  }
  CHECK(sum / 26 == doctest::Approx(0).epsilon(1e-6));
  CHECK(squares / 26 == doctest::Approx(1).epsilon(1e-6));
}
