// The members of a network: which public keys each peer id may have, and where the peer listens.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "net/tls/keys.hpp"

namespace gossamer::net {

struct Member {
  std::vector<PublicKey> keys;          ///< more than one while a key is rotated
  std::string address = {};             ///< host:port; empty: not given here
  std::vector<PublicKey> expired = {};  ///< keys that the peer had, and that are none any more
};

/// One key may have several ids: a process hosts several peers.
class MemberList {
 public:
  MemberList() = default;
  explicit MemberList(std::map<int, Member> members) : members_(std::move(members)) {}

  /// The key may be that of this peer.
  bool has(int id, const PublicKey& key) const;
  /// The key may be that of some peer.
  bool has(const PublicKey& key) const;
  /// The key was that of this peer, and has expired.
  bool has_expired(int id, const PublicKey& key) const;
  /// "has expired", or `otherwise`: of a key that is that of no peer.
  std::string objection(const PublicKey& key, std::string otherwise) const;
  /// The highest id and 1.
  int size() const { return members_.empty() ? 0 : members_.rbegin()->first + 1; }
  /// Null if the id is not that of a member.
  const Member* find(int id) const;

 private:
  std::map<int, Member> members_;
};

/// What a process needs to prove its own identity and to check that of others.
struct Credentials {
  KeyPair key;
  MemberList members;
};

}  // namespace gossamer::net
