// What processes that claim their ids have claimed last. A process that claims another id releases
// the one before; its own word of that may take long to reach all, where others have released the
// same id, and the newer claim says so too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "net/wire/book_message.hpp"

namespace gossamer::net {

class NewestClaims {
 public:
  /// The process has released the id since.
  bool is_void(const AddressRecord& record) const {
    const auto newest = claims_.find(record.process);
    return record.claimed && record.standing != Standing::lost && newest != claims_.end() &&
           newest->second.version > record.version && newest->second.peer != record.peer;
  }

  /// A record has become part of `entries`, the records of a book by peer, of at most `nodes`
  /// peers: the record that it makes void, if there is one, is that of a lost process from now on.
  template <class Entries>
  void note(const AddressRecord& record, Entries& entries, int nodes) {
    if (!record.claimed || record.standing == Standing::lost) return;
    Claim& newest = claims_.emplace(record.process, Claim{0, record.peer}).first->second;
    if (record.version < newest.version) return;
    const auto before = entries.find(newest.peer);
    if (newest.peer != record.peer && before != entries.end() &&
        before->second.record.process == record.process)
      before->second.record.standing = Standing::lost;
    newest = {record.version, record.peer};
    // Any number of processes may be made up, in a network without keys.
    if (claims_.size() <= kMostBeside + 2 * static_cast<std::size_t>(nodes)) return;
    std::set<std::uint64_t> present;
    for (const auto& [unused, entry] : entries) present.insert(entry.record.process);
    std::erase_if(claims_, [&](const auto& claim) { return !present.contains(claim.first); });
  }

  std::size_t size() const { return claims_.size(); }

 private:
  /// Claims that are kept beside two for each peer.
  static constexpr std::size_t kMostBeside = 64;

  struct Claim {
    std::uint64_t version = 0;
    int peer = 0;
  };
  std::map<std::uint64_t, Claim> claims_;  ///< by process
};

}  // namespace gossamer::net
