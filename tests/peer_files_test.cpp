// The files of a run: whole or absent, and never believed when damaged.
#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <numeric>

#include "peer_words.hpp"

using namespace gossamer;
using namespace gossamer::peer;
using namespace gossamer::peer::testing;

namespace {

/// No file grows past `bytes` while it lives, as on a full disk.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    before_signal_ = std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, before_signal_);
  }

 private:
  rlimit before_{};
  void (*before_signal_)(int) = nullptr;
};

std::size_t files_in(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

struct TwoTensors {
  std::vector<float> a = std::vector<float>(6), b{-0.0F, 1e-45F, 3.4e38F};
  TwoTensors() { std::iota(a.begin(), a.end(), 1.5F); }
  std::vector<Tensor> tensors() const {
    return {{"peer0.weight \"é\"", {2, 3}, a}, {"peer0.bias", {3}, b}, {"none", {0}, {}}};
  }
};

}  // namespace

TEST_CASE("a file is replaced whole, or stays as it was") {
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

TEST_CASE("a log ends with its last whole line when the disk is full, and stays failed") {
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
    const Status later = log->write({{"record", "end"}});  // there would be room again, but a record is missing
    REQUIRE_FALSE(later.ok());
    CHECK(later.error().message == first);
  }
  CHECK(content_of(path) == "{\"record\":\"header\"}\n");
  CHECK_FALSE(RecordFile::create(path).ok());
}

TEST_CASE("what is not UTF-8 does not keep a log from being written") {
  CHECK(text_of({{"message", "cannot write /tmp/\xff"}}) == "{\"message\":\"cannot write /tmp/\xef\xbf\xbd\"}");
}

TEST_CASE("safetensors: by the format's definition, and back") {
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
    CHECK((expected.values.empty() ||
           std::memcmp(read.values.data(), expected.values.data(), expected.values.size_bytes()) == 0));
  }
}

TEST_CASE("safetensors cut short at any byte, longer, or with any byte changed") {
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

TEST_CASE("logs: a torn last line is left out, a damaged one is an error that names it, a folder without logs says so") {
  const Folder folder;
  const auto log = [&](const std::string& content) {
    written(folder.path / "log-0.jsonl", content);
    return read_logs(folder.path);
  };
  const auto torn = log("{\"record\":\"header\"}\n{\"record\":\"round\"}\n{\"record\":\"e");
  REQUIRE(torn.ok());
  CHECK(torn->front().records.size() == 1);
  CHECK(torn->front().end() == nullptr);
  const auto damaged = log("{\"record\":\"header\"}\nnonsense\n{\"record\":\"end\"}\n");
  REQUIRE_FALSE(damaged.ok());
  CHECK(damaged.error().message.find("log-0.jsonl:2") != std::string::npos);
  CHECK_FALSE(log("{\"record\":\"round\"}\n").ok());
  CHECK_FALSE(log("").ok());
  CHECK_FALSE(log("[]\n").ok());
  const Folder empty;
  const auto none = read_logs(empty.path);
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().message.find("holds no run") != std::string::npos);
  CHECK_FALSE(read_logs(empty.path / "missing").ok());
}
