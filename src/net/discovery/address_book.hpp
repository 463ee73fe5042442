// Where each peer of a network listens, as one process knows it. Processes exchange and merge their
// books until all books are equal. A process is living unless it is lost.
//
// The membership protocol is SWIM's (Das, Gupta and Motivala 2002), with whole books in place of
// piggy-backed updates: docs/WIRE.md. A process that does not answer is suspected; it refutes the
// suspicion with a newer version of its record, or is lost. The record of a lost process is kept,
// in case the process restarts, but its ids are free: processes without a given id claim one. A
// claim is settled when all living processes have stated the same view: a book without a missing id
// may have the record of a process that has ended meanwhile.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gossip/scheduler.hpp"
#include "net/discovery/newest_claims.hpp"
#include "net/wire/book_message.hpp"

namespace gossamer::net {

struct AddressBookOptions {
  int nodes = 0;  ///< ids are 0 to nodes − 1
  /// Ids without which no network begins, ascending, which are claimed first. Empty: all.
  std::vector<int> first = {};
  /// Ids that processes with the run folder of this one had before: it claims one of them if no
  /// living process has it.
  std::vector<int> former = {};
  std::string network;             ///< book_network()
  std::uint64_t process = 0;       ///< of this process; drawn at random, not 0
  gossip::Time suspicion_time{0};  ///< from the suspicion to the loss of a process
  /// In a network with keys: signs a text with the key of this process, and says whether a text was
  /// signed with a key of a peer. Then records without a valid signature are left out.
  std::function<Signature(const std::string& text)> sign = {};
  std::function<bool(int peer, const std::string& text, const Signature& signature)> is_signed = {};
};

/// Deterministic: it draws its random numbers from the number of the process, and has no clock.
class AddressBook {
 public:
  /// Another process with an id of this one.
  struct Rival {
    std::string address;
    bool has_priority = false;  ///< it is settled, and has the lower number
  };

  explicit AddressBook(AddressBookOptions options);

  /// This process hosts these peers, and releases none. Once, before listen_at(), in place of
  /// claim().
  void host(const std::vector<int>& peers);
  /// This process claims an id without a living process, or the one recorded for its own address,
  /// now or as soon as there is one. If two processes claim one id, the one that is not settled
  /// yields; if neither is, the one with the higher number does.
  void claim();
  /// This process does not release its id any more. Only with an id; call it when agrees() holds.
  void settle();
  /// Where this process listens. Its records carry the address from then on, and none exist before.
  void listen_at(const Address& address);

  const std::set<int>& own() const { return own_; }
  const AddressBookOptions& options() const { return options_; }

  /// Merges the book of another process. Returns whether this book has changed.
  /// A record that its process cannot have made, for it has no valid signature or far too high a
  /// version, is left out.
  bool merge(const std::vector<AddressRecord>& records, gossip::Time now);
  /// The keys of peers have changed: drops the records that no key of their peer has signed.
  void drop_invalid();
  /// The process did not answer. Returns whether that changed the book.
  bool suspect(std::uint64_t process, gossip::Time now);
  /// Suspected processes are lost when their time is over.
  void tick(gossip::Time now);

  /// Null if the peer is not known.
  const AddressRecord* find(int peer) const;
  /// Sorted by peer. For one peer, the record of a lost process, or of one that released the id,
  /// precedes the current one.
  std::vector<AddressRecord> records() const;
  /// The ids without a living process, ascending.
  std::vector<int> missing() const;
  /// Whether `holds` returns true for every record of a living process.
  template <class Predicate>
  bool all_living(Predicate holds) const {
    return std::ranges::all_of(entries_, [&](const auto& entry) {
      return entry.second.record.standing == Standing::lost || holds(entry.second.record);
    });
  }
  /// The last process that has repeated a claim to an id of this process, from another address,
  /// since the last call.
  std::optional<Rival> take_rival() { return std::exchange(rival_, {}); }

 private:
  struct Entry {
    AddressRecord record;
    gossip::Time suspected_since{0};
  };

  void write_own(int peer, std::uint64_t version);
  std::uint64_t view() const;
  void state_view();
  void draw_id();
  bool merge_own(const AddressRecord& record, gossip::Time now);
  void count_conflict(const AddressRecord& record);
  bool retract(const AddressRecord& record);
  void remember(const AddressRecord& record);
  bool yields_to(const AddressRecord& record) const;

  AddressBookOptions options_;
  std::map<int, Entry> entries_;
  std::map<int, AddressRecord> former_;  ///< by peer: of lost processes, or released by this one
  NewestClaims newest_claims_;
  std::set<int> own_;
  std::optional<Address> address_;
  bool claims_ = false, settled_ = false;
  std::uint64_t view_ = 0, last_version_ = 0;  ///< the highest version of its own records
  std::map<std::uint64_t, int> conflicts_;     ///< by process: over an id of this one
  std::optional<Rival> rival_;
  std::mt19937_64 random_;
};

/// The process of the book has an id, and the records of all living processes, its own included,
/// have the same view. False while an id has no living process and no process is settled. Always
/// false with keys, where ids are not claimed.
bool agrees(const AddressBook& book);
/// All living processes are settled.
bool settled(const AddressBook& book);

}  // namespace gossamer::net
