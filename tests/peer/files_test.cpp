// The files of a run: atomic writes, and detection of damage.
#include <sys/stat.h>

#include <cstring>
#include <numeric>

#include "tests/peer/test_util.hpp"

using namespace gossamer;
using namespace gossamer::peer;
using namespace gossamer::peer::testing;

namespace {

/// Records of a log of peer 0 of 2, with all required fields.
Json a_header() {
  return {
      {"record", "header"}, {"schema", 1},       {"run_id", "r"},
      {"peers", 2},         {"servers", 0},      {"hosted", {0}},
      {"parameters", 3},    {"time", "virtual"}, {"config", {{"algorithm", {{"kind", "dpsgd"}}}}}};
}
Json a_round() {
  return {{"record", "round"},   {"round", 0},           {"peer", 0},           {"seconds", 0.5},
          {"train_loss", {}},    {"test_loss", 1.5},     {"test_accuracy", {}}, {"bytes_sent", 1},
          {"bytes_received", 1}, {"train_seconds", 0.1}, {"wait_seconds", 0},   {"mix_seconds", 0}};
}
Json a_network() {
  return {{"record", "network"},
          {"round", 0},
          {"consensus_distance", 1},
          {"averaged_loss", {}},
          {"averaged_accuracy", {}},
          {"distance_to_optimum", 2.5},
          {"averaged_distance_to_optimum", 1.5}};
}
Json an_end() {
  return {{"record", "end"},     {"reason", "finished"}, {"message", ""},
          {"rounds", 1},         {"seconds", 1.5},       {"wall_seconds", 0.1},
          {"node_steps", 1},     {"bytes_sent", 1},      {"refused_connections", {}},
          {"lending_links", {}}, {"row_hashes", {"ab"}}};
}
std::string lines_of(const std::vector<Json>& records) {
  std::string lines;
  for (const Json& record : records) lines += record.dump() + "\n";
  return lines;
}

std::size_t files_in(const fs::path& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

struct TwoTensors {
  std::vector<float> a = std::vector<float>(6), b{-0.0F, 1e-45F, 3.4e38F};
  TwoTensors() { std::iota(a.begin(), a.end(), 1.5F); }
  std::vector<Tensor> tensors() const {
    return {{"peer0.weight \"é\"", {2, 3}, a}, {"peer0.bias", {3}, b}, {"none", {0}, {}}};
  }
};

}  // namespace

TEST_CASE("a file is replaced as a whole, or is unchanged") {
  const Folder folder;
  const fs::path path = folder.path / "summary.json";
  REQUIRE(write_file(path, "first").ok());
  {
    const FullDisk disk(1000);
    const Status status = write_file(path, std::string(2000, 'x'));
    REQUIRE_FALSE(status.ok());
    CHECK(status.error().kind == ErrorKind::data);
    CHECK(status.error().message.find(path.string()) != std::string::npos);
  }
  CHECK(content_of(path) == "first");
  CHECK(files_in(folder.path) == 1);
  REQUIRE(write_file(path, "").ok());
  CHECK(content_of(path).empty());
  CHECK_FALSE(write_file(folder.path / "no" / "such", "x").ok());
}

TEST_CASE("no file takes the place of a pipe, a device or a folder") {
  const Folder folder;
  const auto pipe = folder.path / "pipe", link = folder.path / "link", own = folder.path / "own";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  std::filesystem::create_symlink(pipe, link);
  std::filesystem::create_directory(own);
  for (const auto& place : {pipe, link, own}) {
    const Status written = write_file(place, "text");
    REQUIRE_FALSE(written.ok());
    CHECK(contains(written.error().message, place.string() + ": it is no regular file but a "));
  }
  CHECK(std::filesystem::is_fifo(pipe));
  CHECK(std::filesystem::is_symlink(link));
  CHECK(write_file(folder.path / "new", "text").ok());
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 4);
}

TEST_CASE("on a full disk a log ends with its last complete line, and later writes fail") {
  const Folder folder;
  const fs::path path = folder.path / "log-0.jsonl";
  {
    auto log = RecordFile::create(path);
    REQUIRE(log.ok());
    REQUIRE(log->write({{"record", "header"}}).ok());
    std::string first;
    {
      const FullDisk disk(100);
      const Status status = log->write({{"record", "round"}, {"sketch", std::vector<int>(100)}});
      REQUIRE_FALSE(status.ok());
      CHECK(status.error().kind == ErrorKind::data);
      first = status.error().message;
      CHECK(first.find(path.string()) != std::string::npos);
    }
    const Status later =
        log->write({{"record", "end"}});  // there would be room again, but a record is missing
    REQUIRE_FALSE(later.ok());
    CHECK(later.error().message == first);
  }
  CHECK(content_of(path) == "{\"record\":\"header\"}\n");
  CHECK_FALSE(RecordFile::create(path).ok());
}

TEST_CASE("a log that is no longer the file of its name takes no record") {
  const Folder folder;
  const fs::path path = folder.path / "log-0.jsonl", away = folder.path / "log-0.jsonl.1";
  const auto written_after = [&](const std::function<void()>& what) {
    auto log = RecordFile::create(path);
    REQUIRE(log.ok());
    REQUIRE(log->write({{"record", "header"}}).ok());
    what();
    CHECK(log->sync().ok());  // its own descriptor
    const Status lost = log->write({{"record", "round"}});
    fs::remove(path), fs::remove(away);
    return lost;
  };
  CHECK(written_after([] {}).ok());
  CHECK(written_after([&] { fs::rename(path, away), fs::rename(away, path); }).ok());
  for (const std::function<void()>& what : std::vector<std::function<void()>>{
           [&] { fs::remove(path); }, [&] { fs::rename(path, away); },
           [&] { fs::rename(path, away), fs::copy_file(away, path); },
           [&] { fs::resize_file(path, 0); }}) {
    const Status lost = written_after(what);
    REQUIRE_FALSE(lost.ok());
    CHECK(lost.error().kind == ErrorKind::data);
    CHECK(lost.error().message.starts_with(
        fmt::format("cannot write {}: the file was removed, renamed, replaced or truncated since "
                    "this process opened it; put it back as it was",
                    path.string())));
  }
}

TEST_CASE("a log can contain bytes that are not UTF-8") {
  CHECK(text_of({{"message", "cannot write /tmp/\xff"}}) ==
        "{\"message\":\"cannot write /tmp/\xef\xbf\xbd\"}");
}

TEST_CASE("safetensors: files follow the definition of the format, and can be read") {
  const Folder folder;
  const TwoTensors given;
  const fs::path path = folder.path / "final-0.safetensors";
  REQUIRE(write_safetensors(path, given.tensors(), {{"run_id", "r"}}).ok());

  const std::string bytes = content_of(path);
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  REQUIRE(8 + length <= bytes.size());
  CHECK(bytes[8] == '{');
  CHECK((8 + length) % 8 == 0);
  const Json header = Json::parse(bytes.substr(8, length));
  CHECK(header["__metadata__"]["run_id"] == "r");
  const Json& bias = header["peer0.bias"];
  CHECK(bias["dtype"] == "F32");
  CHECK(bias["shape"] == Json::array({3}));
  CHECK(bias["data_offsets"] == Json::array({24, 36}));
  CHECK(std::memcmp(bytes.data() + 8 + length + 24, given.b.data(), 12) == 0);
  CHECK(bytes.size() == 8 + length + 36);

  const auto file = read_safetensors(path);
  REQUIRE(file.ok());
  CHECK(file->metadata.at("run_id") == "r");
  REQUIRE(file->tensors.size() == 3);
  const std::vector<Tensor> tensors = given.tensors();
  for (std::size_t i = 0; i < 3; ++i) {
    const Tensor &expected = tensors[i], &read = file->tensors[i];
    CHECK(read.name == expected.name);
    CHECK(read.shape == expected.shape);
    REQUIRE(read.values.size() == expected.values.size());
    CHECK((expected.values.empty() || std::memcmp(read.values.data(), expected.values.data(),
                                                  expected.values.size_bytes()) == 0));
  }
}

TEST_CASE("safetensors: truncated at any byte, extended, or with any byte changed") {
  const Folder folder;
  const TwoTensors given;
  const fs::path path = folder.path / "final-0.safetensors";
  REQUIRE(write_safetensors(path, given.tensors(), {{"run_id", "r"}}).ok());
  const std::string whole = content_of(path);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const auto file = read_safetensors(written(path, whole.substr(0, length)));
    REQUIRE_FALSE_MESSAGE(file.ok(), length);
    CHECK(file.error().kind == ErrorKind::data);
    CHECK(file.error().message.find(path.string()) != std::string::npos);
  }
  CHECK_FALSE(read_safetensors(written(path, whole + "more")).ok());
  CHECK_FALSE(read_safetensors(folder.path / "missing").ok());
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (const char flip : {'\x01', '\x80'}) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ flip);
      const auto file = read_safetensors(written(path, changed));
      if (!file.ok()) continue;
      std::size_t values = 0;
      for (const Tensor& tensor : file->tensors) values += tensor.values.size();
      CHECK(values == 9);
    }
}

TEST_CASE("a device, or a file larger than the limit, is refused") {
  const Folder folder;
  const fs::path pipe = folder.path / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  for (const fs::path& path : {fs::path("/dev/zero"), pipe, folder.path}) {
    const auto content = read_file(path, 100);
    REQUIRE_FALSE(content.ok());
    CHECK(content.error().kind == ErrorKind::data);
    CHECK(content.error().message.find(path.string()) != std::string::npos);
    CHECK(load_config(path.string(), {}).error().message == content.error().message);
    CHECK_FALSE(read_safetensors(path).ok());
  }
  written(folder.path / "ten", "0123456789");
  CHECK(read_file(folder.path / "ten", 10).ok());
  CHECK_FALSE(read_file(folder.path / "ten", 9).ok());
}

TEST_CASE("logs: a field that is missing, of another type or out of range is named with its line") {
  const Folder folder;
  const auto log = [&](const std::vector<Json>& records) {
    written(folder.path / "log-0.jsonl", lines_of(records));
    return read_logs(folder.path);
  };
  const std::vector<Json> whole{a_header(), a_round(), a_network(), an_end()};
  REQUIRE(log(whole).ok());
  const auto refused = [&](const std::vector<Json>& records, std::size_t line,
                           const std::string& field) {
    const auto read = log(records);
    REQUIRE_MESSAGE(!read.ok(), field);
    CHECK(read.error().kind == ErrorKind::data);
    CAPTURE(read.error().message);
    CHECK(read.error().message.find(fmt::format("log-0.jsonl:{}: {}: ", line, field)) !=
          std::string::npos);
  };
  for (std::size_t i = 0; i < whole.size(); ++i)
    for (const auto& [field, value] : whole[i].items()) {
      if (field == "record") continue;
      std::vector<Json> changed = whole;
      changed[i].erase(field);
      refused(changed, i + 1, field);
      changed[i][field] = Json::array({Json::object()});
      refused(changed, i + 1, field);
    }
  const auto with = [&](std::size_t i, const std::string& field, const Json& value) {
    std::vector<Json> changed = whole;
    changed[i][field] = value;
    refused(changed, i + 1, field);
  };
  for (const Json& peers :
       {Json(0), Json(-1), Json(2.0), Json(1e300), Json(65536), Json(2000000000)})
    with(0, "peers", peers);
  for (const char* hosted :
       {"[]", "[99999999999]", "[-1]", "[1, 0]", "[0, 0]", "[0, 2]", "[1]", "[0.0]", "0"})
    with(0, "hosted", Json::parse(hosted));
  for (const Json& servers : {Json(-1), Json(65536), Json(0.5)}) with(0, "servers", servers);
  with(0, "schema", 99);
  with(0, "run_id", "");
  with(0, "config", {{"algorithm", {{"kind", 1}}}});
  with(1, "round", -1);
  with(1, "peer", 1);
  with(1, "peer", 4294967296);
  with(1, "wait_seconds", -1.0);
  with(2, "backdoor_success", "0.5");
  with(3, "reason", "banana");
  with(3, "row_hashes", Json::array());
  refused({a_round()}, 1, "record");
  refused({a_header(), a_header()}, 2, "record");
  refused({a_header(), an_end(), a_round()}, 3, "record");
  refused({a_header(), {{"record", "banana"}}}, 2, "record");
  refused({a_header(), Json::array()}, 2, "record");
}

TEST_CASE("a log that ends within its header is an error, or is skipped with a message") {
  const Folder folder;
  written(folder.path / "log-0.jsonl", lines_of({a_header()}));
  written(folder.path / "log-1.jsonl", "{\"record\":\"hea");
  const auto strict = read_logs(folder.path);
  REQUIRE_FALSE(strict.ok());
  CHECK(
      strict.error().message.find(
          "log-1.jsonl ends within its header: its process was killed before it wrote a record") !=
      std::string::npos);
  std::vector<std::string> said;
  const auto lenient =
      read_logs(folder.path, [&](const std::string& message) { said.push_back(message); });
  REQUIRE(lenient.ok());
  CHECK(lenient->size() == 1);
  CHECK(said == std::vector<std::string>{strict.error().message});
}

TEST_CASE(
    "logs: an incomplete last line is skipped, a damaged line is an error, a folder without logs "
    "is an error") {
  const Folder folder;
  const auto log = [&](const std::string& content) {
    written(folder.path / "log-0.jsonl", content);
    return read_logs(folder.path);
  };
  const auto torn = log(lines_of({a_header(), a_round()}) + "{\"record\":\"e");
  REQUIRE(torn.ok());
  CHECK(torn->front().records.size() == 1);
  CHECK(torn->front().end() == nullptr);
  const auto damaged = log(lines_of({a_header()}) + "nonsense\n" + lines_of({an_end()}));
  REQUIRE_FALSE(damaged.ok());
  CHECK(damaged.error().message.find("log-0.jsonl:2") != std::string::npos);
  CHECK_FALSE(log("{\"record\":\"round\"}\n").ok());
  CHECK_FALSE(log("").ok());
  CHECK_FALSE(log("[]\n").ok());
  const Folder empty;
  const auto none = read_logs(empty.path);
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().message.find("contains no run") != std::string::npos);
  CHECK_FALSE(read_logs(empty.path / "missing").ok());
}
