// Where each peer of a network listens, as one process knows it. Books that are merged again and
// again, from process to process, become alike: each record is that of the newest version.
//
// The membership protocol is SWIM's (Das, Gupta and Motivala 2002), with whole books in place of
// piggy-backed updates. A process that does not answer is suspected; it refutes the suspicion with
// a newer version of its record, or is lost in the end. A lost process keeps its record, in case it
// comes back, but its ids are free: processes without a given id claim one here. A claim
// holds when all processes have stated that they see it: a book that looks complete may have the
// record of a process which has ended meanwhile.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "gossip/scheduler.hpp"
#include "net/wire/book_message.hpp"

namespace gossamer::net {

struct AddressBookOptions {
  int nodes = 0;                   ///< ids are 0 to nodes − 1
  std::string network;             ///< book_network()
  std::uint64_t process = 0;       ///< of this process; drawn at random, not 0
  gossip::Time suspicion_time{0};  ///< from the suspicion to the loss of a process
  /// In a network with keys: signs a text with the key of this process, and says whether a text was
  /// signed with a key of a peer. Then records without a valid signature are refused.
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

  /// This process hosts these peers, and gives them up to no other. Once, before claim().
  void host(const std::vector<int>& peers);
  /// This process claims an id that no other one has, now or as soon as it knows of one. Of two
  /// processes that claim one id, the one with the lower number keeps it, unless the other one is
  /// settled. In place of host().
  void claim();
  /// The claimed id is this process's for good. Only with an id, and best when the book agrees().
  void settle();
  /// Where this process listens; records of it are made from then on.
  void listen_at(const Address& address);

  const std::set<int>& own() const { return own_; }
  const AddressBookOptions& options() const { return options_; }

  /// Takes the records of another process that are newer than those here. Returns whether any was.
  /// A record that its process cannot have made, for it has no valid signature or far too high a
  /// version, is left out.
  bool merge(const std::vector<AddressRecord>& records, gossip::Time now);
  /// The keys of peers have changed: drops the records that no key of their peer has signed.
  void drop_invalid();
  /// The process did not answer.
  void suspect(std::uint64_t process, gossip::Time now);
  /// Suspected processes are lost when their time is over.
  void tick(gossip::Time now);

  /// Null if the peer is not known.
  const AddressRecord* find(int peer) const;
  /// By ascending peer; before the record of a process that has taken the place of a lost one, that
  /// of the lost one. None of this process before listen_at().
  std::vector<AddressRecord> records() const;
  /// The ids without a process that is not lost, ascending.
  std::vector<int> missing() const;
  /// Whether it holds of every record of a process that is not lost.
  template <class Predicate>
  bool all_living(Predicate holds) const {
    return std::ranges::all_of(entries_, [&](const auto& entry) {
      return entry.second.record.standing == Standing::lost || holds(entry.second.record);
    });
  }
  /// The last process that claimed an id of this one though it was refused before.
  const std::optional<Rival>& rival() const { return rival_; }

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
  std::map<int, AddressRecord> former_;  ///< records of lost processes, or of this one, by peer
  std::set<int> own_;
  std::optional<Address> address_;
  bool claims_ = false, settled_ = false;
  std::uint64_t view_ = 0;
  std::map<std::uint64_t, int> conflicts_;  ///< by process: over an id of this one
  std::optional<Rival> rival_;
  std::mt19937_64 random_;
};

/// The process of the book has an id, and all that are not lost, itself included, have stated in
/// their records that they see the same process for each id. Never before a book has been complete,
/// or a process of it is settled. In a network without keys; with keys ids are not claimed.
bool agrees(const AddressBook& book);
/// All processes that are not lost are settled.
bool settled(const AddressBook& book);

}  // namespace gossamer::net
