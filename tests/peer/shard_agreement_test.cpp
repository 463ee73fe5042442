// The sizes and moments of shards that processes exchange at the start, whole or in pages;
// and the file from which a latecomer reads them.
#include <cmath>
#include <cstring>
#include <fstream>

#include "base/philox.hpp"
#include "net/wire/frame.hpp"
#include "peer/runtime/shard_agreement.hpp"
#include "tests/peer/test_util.hpp"

using namespace gossamer;
using namespace gossamer::peer;
using namespace gossamer::peer::testing;
using train::ShardSummary;

namespace {

Shards some_shards(std::size_t peers, std::size_t features) {
  RandomStream random(1, 0, Purpose::data);
  Shards shards;
  for (std::size_t p = 0; p < peers; ++p) {
    ShardSummary shard{p + 1, {}, {}};
    for (std::size_t f = 0; f < features; ++f) {
      shard.means.push_back(random.next_normal());
      shard.variances.push_back(f % 7 == 0 ? 0 : std::abs(random.next_normal()));
    }
    shards.push_back(std::move(shard));
  }
  return shards;
}

/// What the process of peer `peer` knows at first.
Shards only(const Shards& all, std::size_t peer) {
  Shards own(all.size());
  own[peer] = all[peer];
  return own;
}

ShardAgreement process(const Shards& all, std::size_t peer) {
  return *ShardAgreement::make(only(all, peer), all.front().means.size());
}

}  // namespace

TEST_CASE("after as many steps as the path is long, all processes know all shards") {
  for (const std::size_t features : {0U, 1U, 3000U}) {
    CAPTURE(features);
    const Shards all = some_shards(5, features);
    std::vector<ShardAgreement> processes;
    for (std::size_t p = 0; p < 5; ++p) processes.push_back(process(all, p));
    CHECK(processes[0].pages() == (features == 3000 ? 4 : 1));
    CHECK_FALSE(processes[0].outcome().ok());
    for (int page = 0; page < processes[0].pages(); ++page)
      for (int step = 0; step < 4; ++step) {
        std::vector<std::string> sent;
        for (const auto& each : processes) sent.push_back(each.contribution(page));
        CHECK(sent[0].size() <= net::kMaxContributionBytes);
        for (std::size_t p = 0; p + 1 < 5; ++p) {
          CHECK(processes[p].merge(page, sent[p + 1]).ok());
          CHECK(processes[p + 1].merge(page, sent[p]).ok());
        }
      }
    for (const ShardAgreement& each : processes) CHECK(*each.outcome() == all);
  }
}

TEST_CASE("a contribution that makes no sense is refused, whatever its bytes") {
  const Shards all = some_shards(3, 2);
  const std::string good = process(all, 1).contribution(0);
  REQUIRE(good.size() == 3 * (8 + 2 * 16));
  const auto with = [&](std::size_t at, auto number) {  // at: in numbers of 8 bytes
    static_assert(sizeof number == 8);
    std::string bytes = good;
    std::memcpy(bytes.data() + 8 * at, &number, 8);
    return bytes;
  };
  ShardAgreement here = process(all, 0);
  CHECK(here.merge(0, good).ok());
  CHECK(here.merge(0, good).ok());
  for (const std::string& bad :
       {std::string(), good.substr(1), good + "x", with(6, std::nan("")), with(6, HUGE_VAL),
        with(6, 1e300), with(7, -1.0), with(7, 1e300), with(5, std::uint64_t{1} << 63)})
    CHECK_MESSAGE(here.merge(0, bad).error().message.ends_with("makes no sense"),
                  here.merge(0, bad).error().message);
  CHECK(here.merge(0, with(0, std::uint64_t{7})).error().message.find("of peer 0's shard") !=
        std::string::npos);
  for (const std::string& other : {with(5, std::uint64_t{9}), with(6, 0.5)})
    CHECK(here.merge(0, other).error().message.find("of peer 1's shard contradicts") !=
          std::string::npos);
  RandomStream random(2, 0, Purpose::data);
  for (int trial = 0; trial < 200; ++trial) {
    std::string bytes(good.size(), 0);
    for (char& byte : bytes) byte = static_cast<char>(random.below(256));
    CHECK_FALSE(process(all, 0).merge(0, bytes).ok());
  }
}

TEST_CASE("more peers than a message has room for are refused") {
  CHECK(ShardAgreement::make(Shards(2730), 1).ok());
  CHECK_FALSE(ShardAgreement::make(Shards(2731), 1).ok());
  CHECK(ShardAgreement::make(Shards(8192), 0).ok());
  CHECK_FALSE(ShardAgreement::make(Shards(8193), 0).ok());
}

TEST_CASE("the file gives back what was agreed, and a changed shard, run or file is named") {
  const Folder folder;
  const Shards all = some_shards(3, 4);
  REQUIRE(record_shards(folder.path, 1, "r", all, 4, false).ok());
  CHECK(*read_shards(folder.path, 1, "r", only(all, 1), 4) == all);
  CHECK(*read_shards(folder.path, 2, "r", only(all, 2), 4) == all);  // another process's file
  CHECK(record_shards(folder.path, 1, "r", all, 4, true).ok());

  const auto refusal = [&](int node, const std::string& run, const Shards& own) {
    const auto read = read_shards(folder.path, node, run, own, 4);
    REQUIRE_FALSE(read.ok());
    return read.error().message;
  };
  CHECK(refusal(1, "s", only(all, 1)).find("is of the run r, and this is the run s") !=
        std::string::npos);
  // A process regrouped to another lowest node compares with the file that is there.
  CHECK(record_shards(folder.path, 0, "r", all, 4, true).ok());
  CHECK_FALSE(std::filesystem::exists(folder.path / "shards-0.json"));
  for (const std::size_t features : {0U, 3U, 5U})
    CHECK_FALSE(read_shards(folder.path, 1, "r", Shards(3), features).ok());
  Shards changed = all;
  changed[1].samples = 7;
  CHECK(refusal(1, "r", only(changed, 1))
            .starts_with("own data: the samples of peer 1 are not those with which the run began: "
                         "2 samples then, 7 "
                         "now"));
  CHECK_FALSE(record_shards(folder.path, 1, "r", changed, 4, true).ok());
  changed = all;
  changed[2].means[3] += 1;
  CHECK(refusal(1, "r", changed).find("of other values") != std::string::npos);
  for (const char* bad : {"", "{", "[]", "{\"schema\":1}", "{\"schema\":2,\"run_id\":\"r\"}",
                          "{\"schema\":1,\"run_id\":\"r\",\"peers\":[1,2,3]}",
                          "{\"schema\":\"x\",\"run_id\":\"r\",\"peers\":[1,2,3]}",
                          "{\"schema\":1,\"run_id\":\"r\",\"peers\":[{\"samples\":-1,\"means\":[],"
                          "\"variances\":[]},{},{}]}"}) {
    std::ofstream(folder.path / "shards-1.json") << bad;
    CHECK(refusal(1, "r", only(all, 1)).find("shards-1.json") != std::string::npos);
  }
  std::filesystem::remove(folder.path / "shards-1.json");
  CHECK(refusal(1, "r", only(all, 1)).find("copy a shards-*.json of another run folder there") !=
        std::string::npos);
}
