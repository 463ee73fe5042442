#include "net/tls/members.hpp"

#include <algorithm>

namespace gossamer::net {

bool MemberList::has(int id, const PublicKey& key) const {
  const Member* member = find(id);
  return member != nullptr && std::ranges::find(member->keys, key) != member->keys.end();
}

bool MemberList::has(const PublicKey& key) const {
  return std::ranges::any_of(members_,
                             [this, &key](const auto& entry) { return has(entry.first, key); });
}

const Member* MemberList::find(int id) const {
  const auto found = members_.find(id);
  return found == members_.end() ? nullptr : &found->second;
}

}  // namespace gossamer::net
