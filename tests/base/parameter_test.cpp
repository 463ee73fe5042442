#include "base/parameter.hpp"

#include <doctest/doctest.h>

#include "base/hash.hpp"
#include "base/rows.hpp"

using namespace gossamer;

namespace {

struct Options {
  int rows = 3;
  double rate = 0.1;
  bool lazy = false;
  std::string kind = "a";
  std::vector<int> hidden = {128};
};

const ParameterSet<Options>& parameters() {
  static const auto set =
      ParameterSet<Options>()
          .add("rows", &Options::rows, {.help = "rows", .minimum = 1})
          .add("rate", &Options::rate, {.help = "rate", .minimum = 0, .minimum_excluded = true})
          .add("lazy", &Options::lazy, {.help = "lazy"})
          .add("kind", &Options::kind, {.help = "kind", .choices = {"a", "b"}})
          .add("hidden", &Options::hidden, {.help = "units", .minimum = 1});
  return set;
}

std::string error_of(const ParameterValues& values) {
  auto result = parameters().read("model", values);
  return result.ok() ? "" : result.error().message;
}

}  // namespace

TEST_CASE("what is absent takes its default, what is given is read with its type") {
  auto options = parameters().read(
      "model", {{"rate", std::int64_t{2}}, {"hidden", std::vector<std::int64_t>{4, 5}}});
  REQUIRE(options.ok());
  CHECK(options->rows == 3);
  CHECK(options->rate == 2.0);
  CHECK(options->hidden == std::vector<int>{4, 5});
}

TEST_CASE("bad values are errors that name the key, the value and the choices") {
  CHECK(error_of({{"rows", std::int64_t{0}}}) == "model.rows: 0 is too small, give at least 1");
  CHECK(error_of({{"rows", 4.0}}) == "model.rows: 4.0 is not an integer; write 4");
  CHECK(error_of({{"rows", 4.5}}) == "model.rows: '4.5' is not an integer");
  CHECK(error_of({{"rate", 0.0}}) == "model.rate: 0 is too small, give more than 0");
  CHECK(error_of({{"kind", std::string("c")}}) == "model.kind: 'c' is not one of a, b");
  CHECK(error_of({{"lazy", std::int64_t{1}}}) == "model.lazy: '1' is not true or false");
  CHECK(error_of({{"width", std::int64_t{1}}}) ==
        "model.width: unknown; there are: rows, rate, lazy, kind, hidden");
  CHECK(error_of({{"rate", std::numeric_limits<double>::quiet_NaN()}}) ==
        "model.rate: nan is not a finite number");
}

TEST_CASE("text is read as the parameter's type") {
  const auto& specs = parameters().specs();
  CHECK(std::get<std::int64_t>(*parse_value(specs[0], " 12 ")) == 12);
  CHECK(std::get<double>(*parse_value(specs[1], "1e-3")) == 1e-3);
  CHECK(std::get<std::vector<std::int64_t>>(*parse_value(specs[4], "[1, 2]")) ==
        std::vector<std::int64_t>{1, 2});
  CHECK(std::get<std::vector<std::int64_t>>(*parse_value(specs[4], "64")) ==
        std::vector<std::int64_t>{64});
  const ParameterSpec texts{"texts", ParameterType::text_list, {}, {}};
  using Texts = std::vector<std::string>;
  CHECK(std::get<Texts>(*parse_value(texts, R"(["0-3", "4: 0-2,4-6"])")) ==
        Texts{"0-3", "4: 0-2,4-6"});
  CHECK(std::get<Texts>(*parse_value(texts, "a, b")) == Texts{"a", "b"});
  CHECK(std::get<Texts>(*parse_value(texts, R"("a,b)")) == Texts{R"("a,b)"});
  CHECK_FALSE(parse_value(specs[0], "1.5").ok());
  CHECK_FALSE(parse_value(specs[0], "").ok());
}

TEST_CASE("rows begin at cache lines, or deliberately not") {
  Rows<float> rows(3, 17), shifted(3, 17, 1);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(reinterpret_cast<std::uintptr_t>(rows.row(i).data()) % kRowAlignment == 0);
    CHECK(reinterpret_cast<std::uintptr_t>(shifted.row(i).data()) % kRowAlignment == sizeof(float));
    for (float value : rows.row(i)) CHECK(value == 0);
  }
}

TEST_CASE("hashes are XXH3's") {
  CHECK(hash64({}) ==
        0x2d06800538d394c2ULL);  // XXH3_64bits of nothing, from xxhash's specification
  CHECK(hash_hex("") == "99aa06d3014798d86001c324468d497f");
}
