#include "net/discovery/address_book.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/check.hpp"

namespace gossamer::net {

namespace {

constexpr int kConflictsOfARestart = 1;  // with the record that the process left before
constexpr std::size_t kMostConflicts = 64;

/// Whether `a` replaces `b`, of one peer. A total order, so books become alike in whatever order
/// records reach them.
bool is_newer(const AddressRecord& a, const AddressRecord& b) {
  const auto order = [](const AddressRecord& record) {
    return std::tuple(record.version, ~record.process, record.standing);
  };
  return order(a) > order(b);
}

}  // namespace

AddressBook::AddressBook(AddressBookOptions options)
    : options_(std::move(options)), random_(options_.process) {
  GOSSAMER_CHECK(options_.process != 0, "a process has a number");
}

void AddressBook::host(const std::vector<int>& peers) {
  own_.insert(peers.begin(), peers.end());
  settled_ = true;
}

void AddressBook::claim() {
  claims_ = true;
  draw_id();
}

void AddressBook::settle() {
  GOSSAMER_CHECK(has_id(), "a process settles on an id");
  settled_ = true;
  if (address_) write_own(*own_.begin(), entries_.at(*own_.begin()).record.version + 1);
}

void AddressBook::listen_at(const Address& address) {
  if (address_ == address) return;
  address_ = address;
  for (const int peer : own_) {
    const auto found = entries_.find(peer);
    write_own(peer, found == entries_.end() ? 1 : found->second.record.version + 1);
  }
}

/// Without a version to spare, after a forged record in a network without keys, nothing is written.
void AddressBook::write_own(int peer, std::uint64_t version) {
  if (version > AddressRecord::kMaxVersion) return;
  AddressRecord record;
  record.peer = peer;
  record.process = options_.process;
  record.version = version;
  record.address = *address_;
  record.settled = settled_;
  if (options_.sign) record.signature = options_.sign(signed_text(options_.network, record));
  entries_[peer] = {std::move(record), {}};
}

/// An id of which this process is likely to have been the host before it was restarted: one with
/// the same address, or that of a lost process of this machine. Else one that nobody has had, else
/// that of any lost process.
void AddressBook::draw_id() {
  if (!claims_ || has_id() || !address_) return;
  std::vector<int> best;
  int best_rank = 0;
  for (int peer = 0; peer < options_.nodes; ++peer) {
    const AddressRecord* record = find(peer);
    const bool lost = record != nullptr && record->standing == Standing::lost;
    int rank = 0;
    if (record == nullptr) rank = 2;
    else if (record->address == *address_) rank = 4;
    else if (lost) rank = record->address.host == address_->host ? 3 : 1;
    if (rank == 0 || rank < best_rank) continue;
    if (rank > best_rank) best.clear();
    best_rank = rank;
    best.push_back(peer);
  }
  if (best.empty()) return;
  const int peer = best[random_() % best.size()];
  const AddressRecord* before = find(peer);
  own_.insert(peer);
  write_own(peer, before == nullptr ? 1 : before->version + 1);
}

Result<bool> AddressBook::merge(const std::vector<AddressRecord>& records, gossip::Time now) {
  for (const AddressRecord& record : records) {
    const AddressRecord* known = find(record.peer);
    if ((known == nullptr || is_newer(record, *known)) && !is_valid(record))
      return Error{ErrorKind::lost_peer,
                   "its address book has a record that the peer's key has not signed"};
  }
  bool changed = false;
  for (const AddressRecord& record : records) {
    if (own_.contains(record.peer)) {
      changed |= merge_own(record);
      continue;
    }
    const AddressRecord* known = find(record.peer);
    // A record of an id that this process has given up, or that it had before it was restarted.
    if (record.process == options_.process) continue;
    if (known != nullptr && !is_newer(record, *known)) continue;
    entries_[record.peer] = {record, now};
    changed = true;
  }
  draw_id();
  return changed;
}

/// A record of an id of this process: refutes it, or gives the id up.
bool AddressBook::merge_own(const AddressRecord& record) {
  if (!address_) return false;
  const AddressRecord* own = find(record.peer);
  const bool newer = own == nullptr || is_newer(record, *own);
  if (record.process != options_.process && yields_to(record)) {
    own_.erase(record.peer);
    entries_[record.peer] = {record, {}};
    draw_id();
    return true;
  }
  if (!newer) return false;
  if (record.process != options_.process) count_conflict(record);
  write_own(record.peer, record.version + 1);
  return true;
}

/// Any number of processes may be made up, in a network without keys.
void AddressBook::count_conflict(const AddressRecord& record) {
  if (conflicts_.size() >= kMostConflicts && !conflicts_.contains(record.process)) return;
  if (++conflicts_[record.process] > kConflictsOfARestart)
    rivals_.insert(to_string(record.address));
}

bool AddressBook::yields_to(const AddressRecord& record) const {
  if (settled_ || record.standing == Standing::lost || record.address == *address_) return false;
  return record.settled || record.process < options_.process;
}

bool AddressBook::is_valid(const AddressRecord& record) const {
  return !options_.is_signed ||
         (record.signature && options_.is_signed(record.peer, signed_text(options_.network, record),
                                                 *record.signature));
}

void AddressBook::suspect(std::uint64_t process, gossip::Time now) {
  for (auto& [peer, entry] : entries_) {
    if (entry.record.process != process || entry.record.standing != Standing::alive) continue;
    entry.record.standing = Standing::suspected;
    entry.suspected_since = now;
  }
}

void AddressBook::tick(gossip::Time now) {
  for (auto& [peer, entry] : entries_)
    if (entry.record.standing == Standing::suspected &&
        now - entry.suspected_since >= options_.suspicion_time)
      entry.record.standing = Standing::lost;
  draw_id();
}

const AddressRecord* AddressBook::find(int peer) const {
  const auto found = entries_.find(peer);
  return found == entries_.end() ? nullptr : &found->second.record;
}

std::vector<AddressRecord> AddressBook::records() const {
  std::vector<AddressRecord> records;
  for (const auto& [peer, entry] : entries_) records.push_back(entry.record);
  return records;
}

std::vector<int> AddressBook::missing() const {
  std::vector<int> missing;
  for (int peer = 0; peer < options_.nodes; ++peer)
    if (const AddressRecord* record = find(peer);
        record == nullptr || record->standing == Standing::lost)
      missing.push_back(peer);
  return missing;
}

bool AddressBook::complete() const { return missing().empty(); }

bool AddressBook::settled() const {
  return complete() && std::ranges::all_of(
                           entries_, [](const auto& entry) { return entry.second.record.settled; });
}

}  // namespace gossamer::net
