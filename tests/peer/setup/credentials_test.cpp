// The files of keys: members, their addresses, the key of a process, and changes while it runs.
#include "peer/setup/credentials.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "gossip/scheduler.hpp"
#include "peer/config/members_file.hpp"
#include "peer/runtime/members_watch.hpp"

using namespace gossamer;
using namespace gossamer::peer;
using namespace std::chrono_literals;

namespace {

/// A folder with a file of members, removed at the end of the test.
class KeyFolder {
 public:
  KeyFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "gossamer-keys-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~KeyFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  std::string members() const { return file("members.toml"); }
  void write(const std::string& text) const {
    std::ofstream(file("part")) << text;
    std::filesystem::rename(file("part"), members());
  }

 private:
  std::filesystem::path path_;
};

std::string member_entry(const std::string& ids, const net::KeyPair& key,
                         const std::string& more = "") {
  return fmt::format("[[member]]\n{}\nkey = \"{}\"\n{}\n", ids, to_string(key.public_key()), more);
}

}  // namespace

TEST_CASE("members: an id may have several keys, and a key several ids") {
  const KeyFolder folder;
  const auto a = net::KeyPair::generate(), b = net::KeyPair::generate();
  folder.write(member_entry("ids = [0, 1]", a, "address = \"10.0.0.5:7000\"") +
               member_entry("id = 1", b));
  const auto file = read_members(folder.members());
  REQUIRE(file.ok());
  const net::MemberList members = file->at(wall_time());
  CHECK(members.has(0, a.public_key()));
  CHECK_FALSE(members.has(0, b.public_key()));
  CHECK(members.has(1, a.public_key()));
  CHECK(members.has(1, b.public_key()));
  CHECK_FALSE(members.has(2, b.public_key()));
  for (const int id : {0, 1}) CHECK(members.has(id, a.public_key()));
  CHECK(members.size() == 2);
}

TEST_CASE("members: an entry that makes no sense is named with its line") {
  const KeyFolder folder;
  const auto a = net::KeyPair::generate();
  const auto message = [&](const std::string& text) {
    folder.write(text);
    const auto members = read_members(folder.members());
    REQUIRE_FALSE(members.ok());
    CHECK(members.error().message.starts_with(folder.members()));
    return members.error().message.substr(folder.members().size());
  };
  CHECK(message(member_entry("id = 65536", a)) == ":2: the id of a member is a number, 0 to n-1");
  CHECK(message(member_entry("ids = []", a)) ==
        ":2: ids is a list of the ids of a process, as [0, 1]");
  CHECK(message(member_entry("", a)) == ":1: this member has no id");
  CHECK(message(member_entry("id = 0", a, "address = \"nowhere\""))
            .starts_with(":4: 'nowhere' is no add"));
  CHECK(message(member_entry("id = 0", a, "address = \"a:1\"") +
                member_entry("id = 0", a, "address = \"b:1\""))
            .ends_with(": peer 0 has two addresses, a:1 and b:1"));
  CHECK(message("member = 3\n").starts_with(": this is no list of members"));
  CHECK(read_members(folder.file("none")).error().kind == ErrorKind::data);
}

TEST_CASE("members: their addresses are those of the peers if all have one") {
  const KeyFolder folder;
  const auto a = net::KeyPair::generate();
  net::NetOptions options;
  options.members = folder.members();
  folder.write(member_entry("ids = [0, 1]", a, "address = \"h:1\"") + member_entry("id = 2", a));
  REQUIRE(add_addresses(options).ok());
  CHECK(options.peers.empty());
  folder.write(member_entry("ids = [0, 1]", a, "address = \"h:1\"") +
               member_entry("id = 2", a, "address = \"i:2\""));
  REQUIRE(add_addresses(options).ok());
  CHECK(options.peers == std::vector<std::string>{"h:1", "h:1", "i:2"});
}

TEST_CASE("members: an address that is not the one in net.peers is refused") {
  const KeyFolder folder;
  const auto a = net::KeyPair::generate();
  net::NetOptions options;
  CHECK(check_member_addresses(options).ok());
  options.members = folder.members();
  options.peers = {"h:1", "i:2", "j:3"};
  folder.write(member_entry("id = 0", a, "address = \"h:1\"") + member_entry("id = 2", a));
  CHECK(check_member_addresses(options).ok());
  folder.write(member_entry("id = 0", a) + member_entry("id = 1", a, "address = \"i:4\""));
  const Status refused = check_member_addresses(options);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().kind == ErrorKind::invalid);
  CHECK(refused.error().message ==
        fmt::format("net.peers has the address i:2 for peer 1, and {} has i:4: give the address in "
                    "one of them, or the same in both",
                    folder.members()));
}

TEST_CASE("credentials: the key of a process is that of its peers") {
  const KeyFolder folder;
  const auto a = net::KeyPair::generate(), b = net::KeyPair::generate();
  REQUIRE(a.save(folder.file("a.key")).ok());
  net::NetOptions options;
  CHECK_FALSE(load_credentials(options, {0})->has_value());
  options.key = folder.file("a.key");
  options.keys = {to_string(a.public_key()), to_string(b.public_key()), "nonsense"};
  CHECK(load_credentials(options, {0}).error().message.starts_with("net.keys[2]: 'nonsense' is"));
  options.keys.pop_back();
  const auto own = load_credentials(options, {0});
  REQUIRE(own.ok());
  CHECK((*own)->key.public_key() == a.public_key());
  CHECK((*own)->members.has(1, b.public_key()));
  CHECK(
      load_credentials(options, {1}).error().message ==
      fmt::format("net.key: the public key of {} is {}, and net.peers has another one for peer 1: "
                  "is it the file of another process?",
                  options.key, to_string(a.public_key())));
}

TEST_CASE("members: a key is that of its peer until it expires") {
  const KeyFolder folder;
  const auto a = net::KeyPair::generate(), b = net::KeyPair::generate();
  folder.write(member_entry("id = 0", a, "expires = 2027-03-01") +
               member_entry("id = 0", b, "expires = 2027-03-01T13:30:00+01:00") +
               member_entry("id = 1", a) + member_entry("id = 1", b, "expires = 0001-01-01"));
  auto file = read_members(folder.members());
  REQUIRE(file.ok());
  using namespace std::chrono;
  const sys_seconds midnight = sys_days(2027y / March / 1), noon = midnight + 12h + 30min;
  CHECK(file->next_expiry(midnight - 1s) == midnight);
  CHECK(file->next_expiry(midnight) == noon);
  CHECK(file->next_expiry(noon) == sys_seconds::max());
  const auto keys_at = [&](sys_seconds time) {
    const net::MemberList members = file->at(time);
    CHECK(members.has(1, a.public_key()));
    CHECK_FALSE(members.has(1, b.public_key()));
    CHECK(members.size() == 2);
    return std::pair(members.has(0, a.public_key()), members.has(0, b.public_key()));
  };
  CHECK(keys_at(midnight - 1s) == std::pair(true, true));
  CHECK(keys_at(midnight) == std::pair(false, true));
  CHECK(keys_at(noon) == std::pair(false, false));
  CHECK(file->at(noon).has_expired(0, a.public_key()));
  CHECK_FALSE(file->at(noon).has_expired(1, a.public_key()));
  // Of two entries of one key the one that ends last counts.
  folder.write(member_entry("id = 0", a) + member_entry("id = 0", a, "expires = 2020-01-01"));
  file = read_members(folder.members());
  REQUIRE(file.ok());
  CHECK(file->at(noon).has(0, a.public_key()));
  CHECK_FALSE(file->at(noon).has_expired(0, a.public_key()));
}

TEST_CASE("members: a process is refused by name if its own key has expired") {
  const KeyFolder folder;
  net::NetOptions options;
  options.key = folder.file("0.key");
  options.members = folder.members();
  const auto a = net::KeyPair::generate();
  REQUIRE(a.save(options.key).ok());
  folder.write(member_entry("id = 0", a, "expires = 2020-01-01"));
  CHECK(load_credentials(options, {0}).error().message.find("which has expired by ") !=
        std::string::npos);
  CHECK(ids_of_key(options).error().message.find("which has expired by ") != std::string::npos);
  CHECK(load_credentials(options, {1}).error().message.find("has no key for peer 1") !=
        std::string::npos);
}

TEST_CASE("members: a key expires while the file is damaged, and again if the clock is set back") {
  const KeyFolder folder;
  const auto a = net::KeyPair::generate(), b = net::KeyPair::generate();
  folder.write(member_entry("id = 0", a, "expires = 2027-03-01T00:00:03Z") +
               member_entry("id = 1", b));
  gossip::VirtualScheduler scheduler;
  std::vector<net::MemberList> lists;
  std::vector<std::string> lines;
  std::chrono::seconds set_back{0};
  const auto watch = MembersWatch::make(
      scheduler, folder.members(), [&](net::MemberList list) { lists.push_back(std::move(list)); },
      [&](const std::string& line) { lines.push_back(line); },
      [&] {
        return std::chrono::sys_days(2027y / std::chrono::March / 1) - set_back +
               std::chrono::floor<std::chrono::seconds>(scheduler.now());
      });
  REQUIRE(watch.ok());
  scheduler.at(500ms, [&] {
    REQUIRE(lists.size() == 1);
    CHECK(lists[0].has(0, a.public_key()));
    folder.write("[[member]]\n");
  });
  scheduler.at(2500ms, [&] {
    CHECK(lists.size() == 1);
    REQUIRE(lines.size() == 1);
  });
  scheduler.at(4500ms, [&] {
    REQUIRE(lists.size() == 2);
    CHECK_FALSE(lists[1].has(0, a.public_key()));
    CHECK(lists[1].has(1, b.public_key()));
    REQUIRE(lines.size() == 2);
    CHECK(lines[1] ==
          "net.members: the key " + to_string(a.public_key()) + " of peer 0 has expired");
    set_back = 10s;
  });
  scheduler.at(6500ms, [&] {
    REQUIRE(lists.size() == 3);
    CHECK(lists[2].has(0, a.public_key()));
  });
  scheduler.at(14'500ms, [&] {
    REQUIRE(lists.size() == 4);
    CHECK_FALSE(lists[3].has(0, a.public_key()));
    scheduler.stop();
  });
  scheduler.run();
}

TEST_CASE("members: a changed file is read within a second, a damaged one is reported") {
  const KeyFolder folder;
  const auto a = net::KeyPair::generate(), b = net::KeyPair::generate();
  folder.write(member_entry("id = 0", a));
  gossip::VirtualScheduler scheduler;
  std::vector<net::MemberList> lists;
  std::vector<std::string> lines;
  const auto watch = MembersWatch::make(
      scheduler, folder.members(), [&](net::MemberList list) { lists.push_back(std::move(list)); },
      [&](const std::string& line) { lines.push_back(line); });
  REQUIRE(watch.ok());
  scheduler.at(3500ms, [&] {
    CHECK(lists.size() == 1);
    folder.write(member_entry("id = 0", b));
  });
  scheduler.at(4500ms, [&] {
    REQUIRE(lists.size() == 2);
    CHECK(lists[1].has(0, b.public_key()));
    folder.write("[[member]]\n");
  });
  scheduler.at(9500ms, [&] {
    CHECK(lists.size() == 2);
    REQUIRE(lines.size() == 2);  // reported once
    CHECK(lines[1].starts_with("net.members: the list of members stays as it was: "));
    std::filesystem::remove(folder.members());
  });
  scheduler.at(11'500ms, [&] {
    CHECK(lines.size() == 3);
    folder.write(member_entry("id = 0", a));
    (*watch)->reload();  // SIGHUP
    CHECK(lists.size() == 3);
  });
  scheduler.at(13'500ms, [&] {
    CHECK(lists.size() == 3);
    scheduler.stop();
  });
  scheduler.run();
}
