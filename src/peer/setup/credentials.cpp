#include "peer/setup/credentials.hpp"

#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>

#include "peer/config/members_file.hpp"

namespace gossamer::peer {
namespace {

/// What gives the keys of the peers, in messages.
std::string list_of(const net::NetOptions& options) {
  return options.members.empty() ? std::string("net.peers") : options.members;
}

Error expired(const net::NetOptions& options, const net::PublicKey& key) {
  return invalid_error(fmt::format(
      "net.key: the public key of {} is {}, which has expired by {} and this machine's clock: make "
      "another one with gossamer keygen, or give it a later time on all machines",
      options.key, to_string(key), options.members));
}

}  // namespace

Result<net::MemberList> load_members(const net::NetOptions& options) {
  if (!options.members.empty()) {
    GOSSAMER_TRY(const MembersFile file, read_members(options.members));
    return file.at(wall_time());
  }
  std::map<int, net::Member> members;
  for (std::size_t i = 0; i < options.keys.size(); ++i) {
    const auto key = net::parse_public_key(options.keys[i]);
    if (!key.ok()) return invalid_error(fmt::format("net.keys[{}]: {}", i, key.error().message));
    members[static_cast<int>(i)].keys = {*key};
  }
  return net::MemberList(std::move(members));
}

Result<std::optional<net::Credentials>> load_credentials(const net::NetOptions& options,
                                                         const std::vector<int>& hosted) {
  if (options.key.empty()) return std::optional<net::Credentials>();
  auto key = net::KeyPair::load(options.key);
  if (!key.ok()) return Error{key.error().kind, "net.key: " + key.error().message};
  GOSSAMER_TRY(net::MemberList members, load_members(options));
  for (const int id : hosted) {
    if (members.has(id, key->public_key())) continue;
    if (members.has_expired(id, key->public_key())) return expired(options, key->public_key());
    const net::Member* member = members.find(id);
    return invalid_error(fmt::format(
        "net.key: the public key of {} is {}, and {} {} peer {}: is it the file of another "
        "process?",
        options.key, to_string(key->public_key()), list_of(options),
        member == nullptr || member->keys.empty() ? "has no key for" : "has another one for", id));
  }
  return std::optional(net::Credentials{*std::move(key), std::move(members)});
}

Result<std::vector<int>> ids_of_key(const net::NetOptions& options) {
  GOSSAMER_TRY(const std::optional<net::Credentials> credentials, load_credentials(options, {}));
  const net::PublicKey& key = credentials.value().key.public_key();
  std::vector<int> ids;
  bool has_expired = false;
  for (int id = 0; id < credentials->members.size(); ++id) {
    if (credentials->members.has(id, key)) ids.push_back(id);
    has_expired = has_expired || credentials->members.has_expired(id, key);
  }
  if (!ids.empty()) return ids;
  if (has_expired) return expired(options, key);
  return invalid_error(fmt::format(
      "net.key: the public key of {} is {}, which {} gives to no peer: add it there, or give --id",
      options.key, net::to_string(key), list_of(options)));
}

Status check_member_addresses(const net::NetOptions& options) {
  if (options.peers.empty() || options.members.empty()) return {};
  GOSSAMER_TRY(const net::MemberList members, load_members(options));
  for (std::size_t id = 0; id < options.peers.size(); ++id) {
    const net::Member* member = members.find(static_cast<int>(id));
    if (member == nullptr || member->address.empty() || member->address == options.peers[id])
      continue;
    return invalid_error(fmt::format(
        "net.peers has the address {} for peer {}, and {} has {}: give the address in one of them, "
        "or the same in both",
        options.peers[id], id, options.members, member->address));
  }
  return {};
}

Status add_addresses(net::NetOptions& options) {
  if (!options.peers.empty() || options.members.empty()) return {};
  GOSSAMER_TRY(const net::MemberList members, load_members(options));
  std::vector<std::string> addresses;
  for (int id = 0; id < members.size(); ++id) {
    const net::Member* member = members.find(id);
    if (member == nullptr || member->address.empty()) return {};
    addresses.push_back(member->address);
  }
  options.peers = std::move(addresses);
  return {};
}

}  // namespace gossamer::peer
