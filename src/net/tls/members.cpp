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

bool MemberList::has_expired(const PublicKey& key) const {
  return std::ranges::any_of(members_, [&key](const auto& entry) {
    const std::vector<PublicKey>& expired = entry.second.expired;
    return std::ranges::find(expired, key) != expired.end();
  });
}

std::string MemberList::objection(const PublicKey& key, std::string otherwise) const {
  return has_expired(key) ? "has expired" : std::move(otherwise);
}

const Member* MemberList::find(int id) const {
  const auto found = members_.find(id);
  return found == members_.end() ? nullptr : &found->second;
}

}  // namespace gossamer::net
