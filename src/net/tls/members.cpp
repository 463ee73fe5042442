#include "net/tls/members.hpp"

#include <algorithm>

namespace gossamer::net {

bool MemberList::has(int id, const PublicKey& key) const {
  const Member* member = find(id);
  return member != nullptr && std::ranges::find(member->keys, key) != member->keys.end();
}

bool MemberList::has(const PublicKey& key) const { return !ids_of(key).empty(); }

const Member* MemberList::find(int id) const {
  const auto found = members_.find(id);
  return found == members_.end() ? nullptr : &found->second;
}

std::vector<int> MemberList::ids_of(const PublicKey& key) const {
  std::vector<int> ids;
  for (const auto& [id, member] : members_)
    if (std::ranges::find(member.keys, key) != member.keys.end()) ids.push_back(id);
  return ids;
}

}  // namespace gossamer::net
