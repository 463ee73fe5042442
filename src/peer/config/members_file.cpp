#include "peer/config/members_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/id_list.hpp"
#include "base/toml_file.hpp"
#include "net/io/address.hpp"

namespace gossamer::peer {
namespace {

constexpr std::size_t kMaxKeys = 16;  // of one peer: an old and a new one while it is rotated

struct Entry {
  std::vector<int> ids;
  net::PublicKey key;
  std::string address;
  std::chrono::sys_seconds expires = std::chrono::sys_seconds::max();
};

Status read_id(const std::string& place, const toml::node& node, std::vector<int>& ids) {
  const auto id = node.value_exact<std::int64_t>();
  if (!id || *id < 0 || *id > kLargestId)
    return invalid_error(place + ": the id of a member is a number, 0 to n-1");
  ids.push_back(static_cast<int>(*id));
  return {};
}

Status read_ids(const std::string& place, const toml::node& node, std::vector<int>& ids) {
  const toml::array* list = node.as_array();
  if (list == nullptr || list->empty())
    return invalid_error(place + ": ids is a list of the ids of a process, as [0, 1]");
  for (const toml::node& id : *list) GOSSAMER_TRY_STATUS(read_id(place, id, ids));
  return {};
}

/// A day, or a time with its distance from UTC.
std::optional<std::chrono::sys_seconds> time_of(const toml::node& node) {
  using namespace std::chrono;
  const auto begin = [](const toml::date& date) {
    return sys_days(year(date.year) / month(date.month) / day(date.day));
  };
  if (const auto date = node.value_exact<toml::date>()) return begin(*date);
  const auto time = node.value_exact<toml::date_time>();
  if (!time || !time->offset) return std::nullopt;
  return begin(time->date) + hours(time->time.hour) + minutes(time->time.minute) +
         seconds(time->time.second) - minutes(time->offset->minutes);
}

Status read_expiry(const std::string& place, const toml::node& node, Entry& entry) {
  const auto time = time_of(node);
  if (!time)
    return invalid_error(place +
                         ": expires is a day, as 2027-03-01, or a time with its distance "
                         "from UTC, as 2027-03-01T12:00:00Z, without quotes");
  entry.expires = *time;
  return {};
}

Status read_field(const std::string& path, std::string_view name, const toml::node& node,
                  Entry& entry) {
  const std::string place = place_of(path, node);
  if (name == "id") return read_id(place, node, entry.ids);
  if (name == "ids") return read_ids(place, node, entry.ids);
  if (name == "expires") return read_expiry(place, node, entry);
  const auto text = node.value_exact<std::string>();
  if (!text) return invalid_error(fmt::format("{}: {} is a text", place, name));
  if (name == "key") {
    const auto key = net::parse_public_key(*text);
    if (!key.ok()) return invalid_error(fmt::format("{}: {}", place, key.error().message));
    entry.key = *key;
  } else {
    const auto address = net::parse_address(*text);
    if (!address.ok()) return invalid_error(fmt::format("{}: {}", place, address.error().message));
    entry.address = *text;
  }
  return {};
}

Result<Entry> read_entry(const std::string& path, const toml::node& node) {
  static const std::set<std::string_view> known{"address", "expires", "id", "ids", "key"};
  const std::string place = place_of(path, node);
  const toml::table* table = node.as_table();
  if (table == nullptr)
    return invalid_error(place + ": write [[member]] above the id and the key of a member");
  Entry entry;
  for (const auto& [name, value] : *table) {
    if (!known.contains(name.str()))
      return invalid_error(
          fmt::format("{}: member.{}: unknown; there are: address, expires, id, ids, key",
                      place_of(path, value), name.str()));
    GOSSAMER_TRY_STATUS(read_field(path, name.str(), value, entry));
  }
  if (entry.ids.empty()) return invalid_error(place + ": this member has no id");
  if (!table->contains("key"))
    return invalid_error(place + ": this member has no key: gossamer keygen --show FILE prints it");
  return entry;
}

Status add(const std::string& place, const Entry& entry, MembersFile& file) {
  for (const int id : entry.ids) {
    std::vector<MembersFile::Key>& keys = file.keys[id];
    const auto known_key = std::ranges::find(keys, entry.key, &MembersFile::Key::key);
    if (known_key == keys.end()) keys.push_back({entry.key, entry.expires});
    else known_key->expires = std::max(known_key->expires, entry.expires);
    if (keys.size() > kMaxKeys)
      return invalid_error(fmt::format("{}: peer {} has more than {} keys: remove the old ones",
                                       place, id, kMaxKeys));
    if (entry.address.empty()) continue;
    const auto [known, added] = file.addresses.emplace(id, entry.address);
    if (!added && known->second != entry.address)
      return invalid_error(fmt::format("{}: peer {} has two addresses, {} and {}", place, id,
                                       known->second, entry.address));
  }
  return {};
}

}  // namespace

net::MemberList MembersFile::at(std::chrono::sys_seconds now) const {
  std::map<int, net::Member> members;
  for (const auto& [id, entries] : keys)
    for (const auto& [key, expires] : entries)
      (expires > now ? members[id].keys : members[id].expired).push_back(key);
  for (const auto& [id, address] : addresses) members[id].address = address;
  return net::MemberList(std::move(members));
}

std::chrono::sys_seconds MembersFile::next_expiry(std::chrono::sys_seconds now) const {
  auto next = std::chrono::sys_seconds::max();
  for (const auto& [id, entries] : keys)
    for (const Key& entry : entries)
      if (entry.expires > now) next = std::min(next, entry.expires);
  return next;
}

Result<MembersFile> read_members(const std::string& path) {
  GOSSAMER_TRY(const toml::table root, read_toml_file(path));
  const toml::array* list = root.get_as<toml::array>("member");
  if (list == nullptr || root.size() != 1)
    return invalid_error(
        fmt::format("{}: this is no list of members: each begins with [[member]], then come id = "
                    "and key =, and nothing else",
                    path));
  MembersFile file;
  for (const toml::node& node : *list) {
    GOSSAMER_TRY(const Entry entry, read_entry(path, node));
    GOSSAMER_TRY_STATUS(add(place_of(path, node), entry, file));
  }
  return file;
}

std::chrono::sys_seconds wall_time() {
  return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
}

}  // namespace gossamer::peer
