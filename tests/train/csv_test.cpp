// Tables from text files: reading, splitting, scaling, and the messages of errors.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "tests/train/data_test_util.hpp"
#include "train/csv_file.hpp"

using namespace gossamer;
using namespace gossamer::train;

namespace {

using Fields = std::vector<std::vector<std::string>>;

/// The rows that are read, or the message.
std::pair<Fields, std::string> rows_of(const std::string& text, char separator = ',') {
  Folder folder("csv");
  folder.file("t.csv", text);
  Fields rows;
  const Status status = read_csv(folder.path("t.csv"), separator, [&](const CsvRow& row) {
    rows.push_back(row.fields);
    return Status();
  });
  // Without the name of the folder, which is another each time.
  const std::string message = status.ok() ? "" : status.error().message;
  return {rows, message.substr(std::min(message.find("t.csv"), message.size()))};
}

/// `count` lines: a, b = 10 a + 1, a constant, and class x, y or z.
std::string lines(int count, const std::string& head = "a,b,c,kind\n") {
  std::string all = head;
  for (int i = 0; i < count; ++i) all += fmt::format("{},{},7,{}\n", i, 10 * i + 1, "yxz"[i % 3]);
  return all;
}

const ParameterValue kAsItIs = false, kRegression = std::string("regression");

}  // namespace

TEST_CASE(
    "lines and fields: blanks, quotes, empty fields, line ends of every kind, a byte order mark") {
  CHECK(rows_of("1,2\n3,4").first == Fields{{"1", "2"}, {"3", "4"}});
  CHECK(rows_of("\xEF\xBB\xBF a , b\t\r\n\r\n  \n1,\"x, \"\"y\"\"\"\r\n").first ==
        Fields{{"a", "b"}, {"1", "x, \"y\""}});
  CHECK(rows_of("1,,\n,\n").first == Fields{{"1", "", ""}, {"", ""}});
  CHECK(rows_of("1;2,5;\"a;b\" \n", ';').first == Fields{{"1", "2,5", "a;b"}});
  CHECK(rows_of("1\t 2\t\t3\n", '\t').first == Fields{{"1", "2", "", "3"}});
  CHECK(rows_of("1\t2\n\t\n \n\r\n", '\t').first == Fields{{"1", "2"}, {"", ""}});
  CHECK(rows_of("").first.empty());
  CHECK(rows_of("1,2\n3,\"4\n5\"\n").second ==
        "t.csv:2: field 2: a quote that is not closed on its line");
  CHECK(rows_of("\"a\"b,1\n").second == "t.csv:1: field 1: text behind a closed quote");
}

TEST_CASE("numbers are whole fields and finite") {
  CHECK(finite_number("1.5e-3") == 1.5e-3);
  CHECK(finite_number("+2") == 2);
  CHECK(finite_number("-.5") == -0.5);
  for (const char* wrong : {"", "+", "+-1", "1,5", "1.5x", "0x10", "nan", "inf", "1e999", "one",
                            " 1", "1e-400x", "-1e400", "0.001e99999999999"})
    CHECK_MESSAGE(!finite_number(wrong).has_value(), wrong);
  CHECK_FALSE(finite_number(std::string(400, '9')).has_value());
  CHECK_FALSE(finite_number(std::string(600, '9') + "e-100").has_value());
  for (const std::string& tiny :
       {std::string("1e-400"), std::string("123.5E-999"), "0." + std::string(400, '0') + "1",
        std::string("1e-99999999999"), "0." + std::string(600, '0') + "1e+100"}) {
    CHECK_MESSAGE(finite_number(tiny) == 0, tiny);
    CHECK(std::signbit(finite_number("-" + tiny).value()));
  }
}

TEST_CASE("classes ascend, the target is found by name or number, the header by itself") {
  Folder folder("csv");
  folder.file("t.csv", lines(12));
  const ParameterValues base{
      {"path", folder.path("t.csv")}, {"test_fraction", 0.25}, {"standardise", kAsItIs}};
  const Dataset data = folder.good(base);
  CHECK(data.name == "csv");
  CHECK(data.classes == 3);
  CHECK(data.feature_count() == 3);
  CHECK(data.count == 12);
  CHECK(data.test_count() == 3);
  std::multiset<float> seen;
  for (std::size_t i = 0; i < 12; ++i) {
    const float a = data.features[3 * i];
    seen.insert(a);
    CHECK(data.features[3 * i + 1] == 10 * a + 1);
    CHECK(data.features[3 * i + 2] == 7);
    CHECK(data.labels[i] == std::vector{1, 0, 2}[static_cast<std::size_t>(a) % 3]);  // y, x, z
    if (i > 0 && i != data.train_count)
      CHECK(a > data.features[3 * (i - 1)]);  // each part as in the file
  }
  CHECK(seen.size() == std::set(seen.begin(), seen.end()).size());
  const auto same = [&](const std::string& target, const std::string& header = "auto") {
    ParameterValues values = base;
    values["target"] = target, values["header"] = header;
    const Dataset other = folder.good(values);
    return other.features == data.features && other.labels == data.labels;
  };
  CHECK(same("kind"));
  CHECK(same("4"));
  CHECK(same("-1", "yes"));
  folder.file("t.csv", lines(12, ""));  // without a header: the first line has numbers
  CHECK(same("4"));
  CHECK(same("-1", "no"));
  folder.file("t.csv", lines(12, "1,2,3,4\n"));
  CHECK(same("4", "yes"));

  ParameterValues by_first = base;
  folder.file("t.csv", lines(12)), by_first["target"] = text("a"), by_first["task"] = kRegression;
  CHECK(contains(folder.refusal(by_first), "t.csv:2: column 4 (kind): 'y' is not a number"));
}

TEST_CASE("classes that are numbers ascend as numbers") {
  Folder folder("csv");
  folder.file("t.csv", "0.5,10\n1,9\n2,-1\n3,10\n4,9\n5,-1\n");
  const Dataset data = folder.good(
      {{"path", folder.path("t.csv")}, {"test_fraction", 0.0}, {"standardise", kAsItIs}});
  CHECK(data.labels == std::vector<std::int32_t>{2, 1, 0, 2, 1, 0});
  CHECK(data.train_count == 6);
}

TEST_CASE("the split depends on split_seed, and not on run.seed") {
  Folder folder("csv");
  folder.file("t.csv", lines(300));
  const auto tests = [&](std::int64_t seed, std::uint64_t run_seed) {
    const auto data = make_dataset(
        "csv", {4, run_seed},
        {{"path", folder.path("t.csv")}, {"split_seed", number(seed)}, {"standardise", kAsItIs}});
    REQUIRE(data.ok());
    CHECK(data->test_count() == 60);
    std::set<float> chosen;
    for (std::size_t i = data->train_count; i < data->count; ++i)
      chosen.insert(data->features[3 * i]);
    return chosen;
  };
  CHECK(tests(0, 1) == tests(0, 2));
  CHECK(tests(0, 1) != tests(1, 1));
  CHECK(*tests(0, 1).begin() < 60);  // all over the file
  CHECK(*tests(0, 1).rbegin() > 240);
}

TEST_CASE("a second file tests; regression; features are standardised by the training samples") {
  Folder folder("csv");
  folder.file("train.csv",
              "x,t,y\n1,1e9,0.5\n2,1000000001,1.5\n3,1000000002,2.5\n4,1000000003,3.5\n");
  folder.file("test.csv", "x,t,y\n5,1e9,-4\n");
  const ParameterValues values{{"path", folder.path("train.csv")},
                               {"test_path", folder.path("test.csv")},
                               {"task", kRegression},
                               {"target", text("y")}};
  const Dataset data = folder.good(values);
  CHECK(data.classes == 0);
  CHECK(data.train_count == 4);
  CHECK(data.targets == std::vector<float>{0.5F, 1.5F, 2.5F, 3.5F, -4});
  const double deviation = std::sqrt(1.25);
  for (std::size_t i = 0; i < 4; ++i)  // an offset of a billion leaves the second column exact
    for (std::size_t f = 0; f < 2; ++f)
      CHECK(data.features[2 * i + f] ==
            doctest::Approx((static_cast<double>(i) - 1.5) / deviation));
  CHECK(data.features[8] == doctest::Approx(2.5 / deviation));
  CHECK(data.features[9] == doctest::Approx(-1.5 / deviation));

  folder.file("train.csv", "x,t,y\n1,0.1,0\n2,0.1,0\n3,0.1,0\n")
      .file("test.csv", "x,t,y\n2,99,1\n");
  const Dataset constant = folder.good(values);
  for (std::size_t i = 0; i < 4; ++i) CHECK(constant.features[2 * i + 1] == 0);
}

TEST_CASE("errors name file, line and column") {
  Folder folder("csv");
  ParameterValues values{{"path", folder.path("t.csv")}};
  const auto refused = [&](const std::string& content, const std::string& words) {
    folder.file("t.csv", content);
    return contains(folder.refusal(values), words);
  };
  const std::string file = folder.path("t.csv");
  CHECK(contains(folder.refusal(), "cannot read " + folder.path() + ": Is a directory"));
  CHECK(contains(folder.refusal({{"path", text("")}}), "data.path: give the file"));
  CHECK(contains(folder.refusal(values), file + ": No such file"));
  CHECK(refused("", file + ": no samples in it"));
  CHECK(refused("a,b\n", file + ": no samples in it"));
  CHECK(refused("1;2\n3;4\n", file + ":1: one column, and a feature and a target are needed; is "
                                     "data.separator = comma right?"));
  CHECK(refused("a,b\n1,2\n3\n", file + ":3: 1 fields, and the first line has 2"));
  CHECK(refused("a,b\n1,x\n,y\n", file + ":3: column 1 (a) is empty"));
  CHECK(refused("1,x\n2,\n", file + ":2: column 2 is empty"));
  CHECK(refused("a,b\n1,x\n\n1e50,y\n",
                file + ":4: column 1 (a): '1e50' is not a number that a float can hold"));
  CHECK(refused("a,b\n1,x\nNaN,y\n", "column 1 (a): 'NaN' is not a number"));
  CHECK(refused("a,b\n1,\"x\n", file + ":2: field 2: a quote"));
  CHECK(
      refused("a,b\n1,0.1\n2,0.2\n3,0.3\n4,0.4\n",
              "column 2 (b) of " + file +
                  " has 4 distinct values in 4 samples, too many for classes; to predict a "
                  "number set data.task = \"regression\" and model.kind = \"linear\", and if they "
                  "are classes name them in data.class_names"));
  CHECK(refused("a,b,c,b\n1,2,3,x\n",
                file + ":1: columns 2 and 4 have the same name, 'b': give each its own"));
  for (const char* target : {"c", "0", "3", "-3", "1.5"}) {
    values["target"] = text(target);
    CHECK(refused(
        "a,b\n1,x\n",
        fmt::format("data.target: '{}' is no column of {}: give one of a, b, a number from 1 to 2",
                    target, file)));
  }
  values["target"] = text("-1"), values["test_fraction"] = 0.9;
  CHECK(refused("1,x\n2,x\n3,x\n", "data.test_fraction: 3 of the 3 samples"));
  values["test_path"] = folder.path("u.csv");
  CHECK(refused("1,x\n2,x\n3,x\n", folder.path("u.csv") + ": No such file"));
  folder.file("u.csv", "1,x\n2,w\n");
  CHECK(refused("1,x\n2,x\n3,x\n",
                folder.path("u.csv") + ":2: column 2: class 'w' is not in " + file));
  folder.file("u.csv", "b,a\n1,x\n");
  CHECK(refused("a,b\n1,x\n2,x\n", folder.path("u.csv") + ":1: its columns are b, a, but " + file +
                                       " has the columns a, b"));
  CHECK(contains(folder.refusal({{"separators", text(",")}}), "data.separators"));
}

TEST_CASE("files that are no text are refused without their bytes") {
  CHECK(rows_of("\x1f\x8b\x08").second ==
        "t.csv: it is gzip, and tables are text: unpack it (gunzip)");
  for (const char* order : {"\xFF\xFE", "\xFE\xFF"})
    CHECK(rows_of(order + std::string("a\0,\0b\0", 6)).second ==
          "t.csv: it is UTF-16: save it as UTF-8");
  CHECK(rows_of("1,2\n" + std::string("a\0,\0b\0", 6)).second ==
        "t.csv:2: a byte 0, which no text has; if it is UTF-16, save it as UTF-8");
  CHECK(rows_of("\x1f\n").first == Fields{{"\x1f"}});
  Folder folder("csv");
  const ParameterValues values{{"path", folder.path("t.csv")}, {"target", text("a")}};
  folder.file("t.csv", "a,b\x1b[2J\nx,1\nx,2\n");
  CHECK(contains(folder.refusal(values), "t.csv:1: the name of column 2 has a control character"));
  folder.file("t.csv", "a,b\rx,1\rx,y\r");  // the line ends of old Macs
  CHECK(contains(folder.refusal(values), "t.csv:1: the name of column 2 has a control character"));
  folder.file("t.csv",
              "\xEF\xBB\xBF"
              "a,b\nx,1\nx,2\n");
  CHECK(folder.good(values).count == 2);
}

TEST_CASE("any byte changed gives an error or a whole table") {
  Folder folder("csv");
  const std::string good = lines(9);
  const ParameterValues values{{"path", folder.path("t.csv")}};
  for (std::size_t at = 0; at < good.size(); ++at)
    for (const unsigned char byte : {0x00, 0x0A, 0x0D, 0x22, 0x2C, 0x2D, 0x35, 0x65, 0xFF}) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(byte);
      const auto data = folder.file("t.csv", bytes).load(values);
      if (!data.ok()) {
        CHECK(data.error().message.size() > 20);
        continue;
      }
      CHECK(data->features.size() == data->count * data->feature_count());
      CHECK(std::ranges::all_of(data->features, [](float value) { return std::isfinite(value); }));
      CHECK((data->labels.size() == data->count && data->train_count > 0));
    }
}
