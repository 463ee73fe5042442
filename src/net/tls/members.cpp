#include "net/tls/members.hpp"

#include <algorithm>
#include <utility>

namespace gossamer::net {

bool MemberList::has(int id, const PublicKey& key) const {
  const Member* member = find(id);
  return member != nullptr && std::ranges::find(member->keys, key) != member->keys.end();
}

bool MemberList::has(const PublicKey& key) const {
  return std::ranges::any_of(members_,
                             [this, &key](const auto& entry) { return has(entry.first, key); });
}

bool MemberList::has_expired(int id, const PublicKey& key) const {
  const Member* member = find(id);
  return member != nullptr && std::ranges::find(member->expired, key) != member->expired.end();
}

std::string MemberList::objection(const PublicKey& key, std::string otherwise) const {
  const bool expired = std::ranges::any_of(
      members_, [this, &key](const auto& entry) { return has_expired(entry.first, key); });
  return expired ? "has expired" : std::move(otherwise);
}

const Member* MemberList::find(int id) const {
  const auto found = members_.find(id);
  return found == members_.end() ? nullptr : &found->second;
}

}  // namespace gossamer::net
